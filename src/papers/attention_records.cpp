// How attention was spread during trainings, what it gave to P1's pivotal words after them, and how weights are spread:
// three files of a study's records.
#include "papers/record_rows.hpp"
#include "papers/shorthand.hpp"

namespace attmirror {

namespace {

using SentenceColumns = std::vector<RecordColumn<std::pair<std::string, SentenceRecord>>>;
using AttentionColumns = std::vector<RecordColumn<std::pair<std::string, AttentionRecord>>>;
using HistogramColumns = std::vector<RecordColumn<std::pair<std::string, HistogramBin>>>;

SentenceColumns sentence_columns() {
  using R = std::pair<std::string, SentenceRecord>;
  using C = RecordCell;
  return {{"run", [](R& row, const C& cell) { row.first = cell.word(); }},
          {"sentence", [](R& row, const C& cell) { row.second.sentence = cell.needed_count(); }},
          {"pivotal", [](R& row, const C& cell) { row.second.pivotal = cell.word(); }},
          {"score", [](R& row, const C& cell) { row.second.score = cell.share(); }},
          {"word_score", [](R& row, const C& cell) { row.second.word_score = cell.share(); }}};
}

// What runs.csv says of the sentences is what they say: how many have a score, and its mean. Files keep four digits.
void check_sentences(const TrainingRecord& record) {
  const auto mean_and_count_of = [&](std::optional<double> SentenceRecord::*member) {
    double total = 0;
    std::int64_t count = 0;
    for (const SentenceRecord& one : record.sentences)
      if (one.*member) total += *(one.*member), ++count;
    return std::pair(total / static_cast<double>(count), count);
  };
  const auto [mean, kept] = mean_and_count_of(&SentenceRecord::score);
  const auto [word_mean, words] = mean_and_count_of(&SentenceRecord::word_score);
  if (record.score_sentences != kept)
    throw bad_input(
        fmt::format("sentences.csv has {} of {} with a score: expected {}, as in runs.csv",
                    counted(static_cast<std::uint64_t>(kept), "sentence"), record.run,
                    record.score_sentences ? fmt::format("{}", *record.score_sentences) : "none"));
  if (record.score && kept > 0 && std::abs(mean - *record.score) > 1e-4)
    throw bad_input(
        fmt::format("sentences.csv: the scores of {} have the mean {:.4f}: expected {:.4f}, as in runs.csv",
                    record.run, mean, *record.score));
  // No sentence: the mean is NaN, which is not equal either.
  if (record.word_score && !(std::abs(word_mean - *record.word_score) <= 1e-4))
    throw bad_input(fmt::format(
        "sentences.csv: the word_scores of {} have the mean {:.4f} over {}: expected {:.4f}, as in runs.csv",
        record.run, word_mean, counted(static_cast<std::uint64_t>(words), "sentence"), *record.word_score));
}

AttentionColumns attention_columns() {
  using R = std::pair<std::string, AttentionRecord>;
  using A = AttentionRecord;
  using C = RecordCell;
  AttentionColumns columns{
      {"run", [](R& row, const C& cell) { row.first = cell.word(); }},
      {"epoch", [](R& row, const C& cell) { row.second.epoch = cell.needed_count(); }},
      {"block", [](R& row, const C& cell) { row.second.block = cell.needed_count(); }},
      {"key_norm", [](R& row, const C& cell) { row.second.key_norm = cell.needed_size(); }},
      {"query_norm", [](R& row, const C& cell) { row.second.query_norm = cell.needed_size(); }},
      {"product_norm", [](R& row, const C& cell) { row.second.product_norm = cell.needed_size(); }}};
  for (const auto& [prefix, spread] : {std::pair{"", &A::all}, std::pair{"class_", &A::class_token}}) {
    const auto named = [&](const char* what) { return fmt::format("{}{}", prefix, what); };
    columns.push_back({named("entropy"), [spread](R& row, const C& cell) {
                         (row.second.*spread).entropy = cell.needed_size();
                       }});
    columns.push_back({named("top_share"), [spread](R& row, const C& cell) {
                         (row.second.*spread).top_share = cell.needed_share();
                       }});
    columns.push_back({named("tokens_90"), [spread](R& row, const C& cell) {
                         (row.second.*spread).tokens_90 = cell.needed_size();
                       }});
  }
  return columns;
}

HistogramColumns histogram_columns() {
  using R = std::pair<std::string, HistogramBin>;
  using C = RecordCell;
  return {{"run", [](R& row, const C& cell) { row.first = cell.word(); }},
          {"map",
           [](R& row, const C& cell) {
             if (std::ranges::find(map_names, cell.text) == map_names.end()) throw cell.error("K, Q or V");
             row.second.map = cell.text.front();
           }},
          {"weight", [](R& row, const C& cell) { row.second.weight = cell.needed_number(); }},
          {"count", [](R& row, const C& cell) { row.second.count = cell.needed_count(); }}};
}

// A histogram has as many large weights as runs.csv says, up to those in the bin that 0.06 lies in, and equally many
// weights of K, Q and V.
void check_histogram(const TrainingRecord& record) {
  constexpr double half_bin = histogram_bin_width / 2, large = 0.06, rounding = 1e-9;
  std::array<std::int64_t, 3> weights{};
  for (std::size_t m = 0; m < map_names.size(); ++m) {
    std::int64_t certainly = 0, possibly = 0;
    for (const HistogramBin& bin : record.histogram) {
      if (bin.map != map_names[m][0]) continue;
      weights[m] += bin.count;
      if (std::abs(bin.weight) - half_bin > large - rounding) certainly += bin.count;
      if (std::abs(bin.weight) + half_bin > large + rounding) possibly += bin.count;
    }
    if (const auto& above = record.maps[m].above; above && (*above < certainly || *above > possibly))
      throw bad_input(fmt::format(
          "histograms.csv has {} to {} weights of {} above 0.06 for {}: expected {}, as in runs.csv",
          certainly, possibly, map_names[m], record.run, *above));
  }
  for (std::size_t m = 1; m < weights.size(); ++m)
    if (weights[m] != weights[0])
      throw bad_input(fmt::format("histograms.csv has {} weights of {} for {}: expected {}, as of K",
                                  weights[m], map_names[m], record.run, weights[0]));
}

}  // namespace

// A training has sentences 1, 2, ..., and all have the same ones.
void read_sentences(std::string_view text, const RecordPlaces& places, std::vector<TrainingRecord>& records) {
  if (text.empty()) return;
  const std::vector<SentenceRecord>* first = nullptr;
  read_rows<std::pair<std::string, SentenceRecord>>(
      text, "sentences.csv", sentence_columns(), [&](std::size_t line, const auto& row) {
        TrainingRecord& record = records[known_place(places, "sentences.csv", line, row.first)];
        const SentenceRecord& next = row.second;
        const std::size_t place = record.sentences.size();
        if (next.sentence != std::ssize(record.sentences) + 1)
          throw bad_input(fmt::format("sentences.csv line {}: sentence of {} is {}: expected {}", line,
                                      row.first, next.sentence, place + 1));
        if (!first) first = &record.sentences;
        if (first != &record.sentences && place < first->size() && (*first)[place].pivotal != next.pivotal)
          throw bad_input(fmt::format(
              "sentences.csv line {}: pivotal is \"{}\": expected \"{}\", as in the first training", line,
              one_line(next.pivotal), one_line((*first)[place].pivotal)));
        record.sentences.push_back(next);
      });
  for (const TrainingRecord& record : records) {
    if (record.sentences.empty()) {
      // A file that was cut lacks those of its last trainings.
      if (record.role == TrainingRole::main && record.score)
        throw bad_input(
            fmt::format("sentences.csv has no sentence of {}, which has a score in runs.csv", record.run));
      continue;
    }
    if (record.sentences.size() != first->size())
      throw bad_input(fmt::format("sentences.csv has {} of {}: expected {}, as of the first training",
                                  counted(record.sentences.size(), "sentence"), record.run, first->size()));
    check_sentences(record);
  }
}

// Epochs of a training ascend, and each has blocks 1, 2, ...
void read_attention(std::string_view text, const RecordPlaces& places, std::vector<TrainingRecord>& records) {
  if (text.empty()) return;
  read_rows<std::pair<std::string, AttentionRecord>>(
      text, "attention.csv", attention_columns(), [&](std::size_t line, const auto& row) {
        TrainingRecord& record = records[known_place(places, "attention.csv", line, row.first)];
        const AttentionRecord& next = row.second;
        const AttentionRecord last = record.attention.empty() ? AttentionRecord{} : record.attention.back();
        const std::int64_t block = next.epoch == last.epoch ? last.block + 1 : 1;
        if (next.block != block)
          throw bad_input(fmt::format("attention.csv line {}: block of {} is {}: expected {}", line,
                                      row.first, next.block, block));
        if (next.epoch < std::max<std::int64_t>(last.epoch, 1) || next.epoch > record.epochs)
          throw bad_input(fmt::format("attention.csv line {}: epoch of {} is {}: expected one from {} to {}",
                                      line, row.first, next.epoch, std::max<std::int64_t>(last.epoch, 1),
                                      record.epochs));
        record.attention.push_back(next);
      });
  for (const TrainingRecord& record : records) {
    const auto in_epoch = [&](std::int64_t epoch) {
      return std::ranges::count(record.attention, epoch, &AttentionRecord::epoch);
    };
    for (const AttentionRecord& one : record.attention)
      if (in_epoch(one.epoch) != in_epoch(record.attention.front().epoch))
        throw bad_input(
            fmt::format("attention.csv: {} has {} in epoch {}: expected {}, as in epoch {}", record.run,
                        counted(static_cast<std::uint64_t>(in_epoch(one.epoch)), "block"), one.epoch,
                        in_epoch(record.attention.front().epoch), record.attention.front().epoch));
  }
}

void read_histograms(std::string_view text, const RecordPlaces& places,
                     std::vector<TrainingRecord>& records) {
  if (text.empty()) return;
  read_rows<std::pair<std::string, HistogramBin>>(
      text, "histograms.csv", histogram_columns(), [&](std::size_t line, const auto& row) {
        TrainingRecord& record = records[known_place(places, "histograms.csv", line, row.first)];
        const HistogramBin& next = row.second;
        if (std::ranges::any_of(record.histogram, [&](const HistogramBin& bin) {
              return bin.map == next.map && bin.weight >= next.weight;
            }))
          throw bad_input(
              fmt::format("histograms.csv line {}: weight of {} is {}: expected one above the last", line,
                          row.first, next.weight));
        record.histogram.push_back(next);
      });
  for (const TrainingRecord& record : records) {
    if (!record.histogram.empty())
      check_histogram(record);
    else if (record.role == TrainingRole::main && record.is_comparable())
      // A file that was cut lacks those of its last trainings.
      throw bad_input(fmt::format("histograms.csv has no weights of {}, which came to its end", record.run));
  }
}

}  // namespace attmirror
