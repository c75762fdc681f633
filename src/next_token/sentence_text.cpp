// Reads text in two passes: the lines become token numbers, one flat array in which each line's numbers lie side by
// side; then equal lines are counted, by a hash of those numbers. Time and memory are linear in the text.
#include "base/atomic_file.hpp"
#include "base/numbers.hpp"
#include "base/words.hpp"
#include "next_token/word_messages.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/sentence_text.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Lines of a text from 1, without their ends; the end of the last line begins no other.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    ++number_;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

// Takes the first word off a line; empty where there is none.
std::string_view take_word(std::string_view& line) {
  std::size_t begin = 0;
  while (begin < line.size() && is_blank(line[begin])) ++begin;
  std::size_t end = begin;
  while (end < line.size() && !is_blank(line[end])) ++end;
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

// Where a word stands, as messages say it.
struct Place {
  std::string_view file;
  std::int64_t line, word;
  std::string text() const { return fmt::format("{}, line {}, word {}", file, line, word); }
};

bool is_control(char32_t letter) { return letter < 0x20 || letter == 0x7F; }

void check_letters(std::string_view word, const Place& place) {
  for (std::size_t i = 0; i < word.size();) {
    const Letter letter = first_letter(word.substr(i));
    if (letter.code == replacement_letter && letter.bytes == 1)
      throw bad_input(fmt::format("{}: byte {} is 0x{:02x}, which is not UTF-8: expected text in UTF-8",
                                  place.text(), i + 1, static_cast<unsigned char>(word[i])));
    if (is_control(letter.code))
      throw bad_input(fmt::format("{}: byte {} is the control character 0x{:02x}: expected a word",
                                  place.text(), i + 1, static_cast<unsigned>(letter.code)));
    i += letter.bytes;
  }
}

// All lines as token numbers: line i has tokens[first[i]] to tokens[first[i + 1] - 1].
struct Lines {
  std::vector<Token> tokens;
  std::vector<std::size_t> first{0};
  std::size_t count() const { return first.size() - 1; }
  std::span<const Token> line(std::size_t i) const {
    return std::span(tokens).subspan(first[i], first[i + 1] - first[i]);
  }
};

// Lines of fewer than two words.
enum class ShortLines {
  refuse,
  offer,  // refuse, and say that they can be left out
  keep,
};

std::string offer_to_skip(ShortLines short_lines) {
  return short_lines == ShortLines::offer
             ? fmt::format("; {} leaves such lines out", field_name("skip_unexplained"))
             : "";
}

// `number_of(word, place)` is the word's token or throws. Line i of the result is line i + 1 of the text.
template <class NumberOf>
Lines read_lines(std::string_view text, std::string_view name, ShortLines short_lines, NumberOf number_of) {
  Lines lines;
  LineReader reader(text);
  while (auto line = reader.next()) {
    Place place{name, reader.number(), 0};
    for (std::string_view word = take_word(*line); !word.empty(); word = take_word(*line)) {
      ++place.word;
      lines.tokens.push_back(number_of(word, place));
    }
    if (place.word == 0 && short_lines != ShortLines::keep)
      throw bad_input(fmt::format("{}, line {} is empty: expected two words or more{}", name, place.line,
                                  offer_to_skip(short_lines)));
    if (place.word == 1 && short_lines != ShortLines::keep)
      throw bad_input(fmt::format(
          "{}, line {} has one word: expected two or more, of which the last follows the others{}", name,
          place.line, offer_to_skip(short_lines)));
    lines.first.push_back(lines.tokens.size());
  }
  return lines;
}

Lines read_with_vocabulary(std::string_view text, std::string_view name, ShortLines short_lines,
                           const Vocabulary& vocabulary, std::string_view vocabulary_name) {
  return read_lines(text, name, short_lines, [&](std::string_view word, const Place& place) {
    if (const auto token = vocabulary.find(word)) return *token;
    check_letters(word, place);
    const std::vector<std::string_view> words(vocabulary.words().begin(), vocabulary.words().end());
    throw bad_input(fmt::format("{}: {} is not in the vocabulary{}{}{}", place.text(), quoted_word(word),
                                vocabulary_name.empty() ? "" : " ", vocabulary_name,
                                did_you_mean(word, words)));
  });
}

Lines read_and_number(std::string_view text, std::string_view name, ShortLines short_lines,
                      Vocabulary& vocabulary) {
  return read_lines(text, name, short_lines, [&](std::string_view word, const Place& place) {
    if (const auto token = vocabulary.find(word)) return *token;
    check_letters(word, place);
    return vocabulary.add(word);
  });
}

// The lines of `shortest` words or more as sentences, the last word as the label; equal lines once, with their number.
SentenceFile count_sentences(const Lines& lines, std::ptrdiff_t vocabulary_size, std::size_t shortest) {
  struct Entry {
    std::size_t line;
    std::int64_t times;
  };
  std::vector<Entry> entries;
  std::unordered_map<std::string_view, std::size_t> known;  // a line's bytes -> its entry
  for (std::size_t i = 0; i < lines.count(); ++i) {
    const std::span<const Token> line = lines.line(i);
    if (line.size() < shortest) continue;
    const std::string_view bytes(reinterpret_cast<const char*>(line.data()), line.size_bytes());
    const auto [entry, is_new] = known.try_emplace(bytes, entries.size());
    if (is_new)
      entries.push_back({i, 1});
    else
      ++entries[entry->second].times;
  }
  SentenceFile result{Sentences(vocabulary_size), {}};
  for (const Entry& entry : entries) {
    const std::span<const Token> line = lines.line(entry.line);
    result.sentences.add(line.first(line.size() - 1), line.back(), static_cast<double>(entry.times));
    result.lines.push_back(static_cast<std::int64_t>(entry.line) + 1);
  }
  return result;
}

Collocations line_collocations(const Lines& lines, std::ptrdiff_t vocabulary_size) {
  Collocations result(vocabulary_size);
  for (std::size_t i = 0; i < lines.count(); ++i)
    if (const auto line = lines.line(i); line.size() == 2) result.add(line[0], line[1]);
  return result;
}

Collocations bigram_collocations(const Lines& lines, std::ptrdiff_t vocabulary_size) {
  Collocations all(vocabulary_size);
  for (std::size_t i = 0; i < lines.count(); ++i) {
    const auto line = lines.line(i);
    for (std::size_t t = 0; t + 1 < line.size(); ++t) all.add(line[t], line[t + 1]);
  }
  std::vector<Token> most_often;
  for (Token x = 0; x < vocabulary_size; ++x) most_often.push_back(all.successor(x));
  return Collocations::hard(most_often);
}

CollocationSource choose_source(const Lines& lines) {
  bool copies = true;
  for (std::size_t i = 0; i < lines.count(); ++i) {
    const auto line = lines.line(i);
    if (line.size() < 2) continue;
    if (line.size() == 2) return CollocationSource::lines;
    copies = copies && std::find(line.begin(), line.end() - 1, line.back()) != line.end() - 1;
  }
  return copies ? CollocationSource::copy : CollocationSource::bigrams;
}

void check_successors(const SentenceText& text, std::string_view name) {
  for (std::ptrdiff_t i = 0; i < text.sentences.count(); ++i)
    for (const Token x : text.sentences.tokens(i)) {
      if (!text.collocations.successors(x).empty()) continue;
      const std::string word = shown_word(text.vocabulary.word(x));
      throw bad_input(fmt::format("{}, line {}: \"{}\" has no successor: expected a line \"{} NEXT\"{}", name,
                                  text.lines[at(i)], word, word, offer_to_skip(ShortLines::offer)));
    }
}

void check_copies(const Lines& lines, const Vocabulary& vocabulary, std::string_view name) {
  for (std::size_t i = 0; i < lines.count(); ++i)
    if (const auto line = lines.line(i); line.size() == 2 && line[0] != line[1])
      throw bad_input(fmt::format(
          "{}, line {} says that {} follows {}: expected no such line, because with copy "
          "each word follows itself",
          name, i + 1, quoted_word(vocabulary.word(line[1])), quoted_word(vocabulary.word(line[0]))));
}

// Appends the line `times` times. Text of more bytes than this is a mistake, such as a weight that is not a count.
void append_line(std::string& text, const std::string& line, double times, const std::string& what) {
  constexpr double most_bytes = 1e10;
  if (times != std::floor(times))
    throw bad_input(fmt::format("the weight of {} is {}: expected a whole number, a line is there so often",
                                what, times));
  if (times * static_cast<double>(line.size()) + static_cast<double>(text.size()) > most_bytes)
    throw bad_input(
        fmt::format("the weight of {} is {}: the text would have more than 10^10 bytes", what, times));
  for (auto n = static_cast<std::int64_t>(times); n > 0; --n) text += line;
}

}  // namespace

std::string_view to_string(CollocationSource source) {
  switch (source) {
    case CollocationSource::automatic:
      return "auto";
    case CollocationSource::lines:
      return "lines";
    case CollocationSource::copy:
      return "copy";
    case CollocationSource::bigrams:
      return "bigrams";
  }
  return "unnamed";
}

CollocationSource parse_collocation_source(std::string_view name) {
  using enum CollocationSource;
  for (const CollocationSource source : {automatic, lines, copy, bigrams})
    if (name == to_string(source)) return source;
  throw bad_input(fmt::format("collocations is \"{}\": expected {}", name,
                              expected_choice(name, {"auto", "lines", "copy", "bigrams"})));
}

Vocabulary parse_vocabulary(std::string_view text, std::string_view name) {
  Vocabulary vocabulary;
  LineReader reader(text);
  while (auto line = reader.next()) {
    const std::string_view word = take_word(*line);
    if (word.empty())
      throw bad_input(fmt::format("{}, line {} is empty: expected a word", name, reader.number()));
    check_letters(word, {name, reader.number(), 1});
    if (!take_word(*line).empty())
      throw bad_input(fmt::format("{}, line {} has several words: expected one", name, reader.number()));
    if (const auto known = vocabulary.find(word))
      throw bad_input(fmt::format("{}, line {}: {} is already given in line {}", name, reader.number(),
                                  quoted_word(word), *known + 1));
    vocabulary.add(word);
  }
  if (vocabulary.size() < 2)
    throw bad_input(fmt::format("the vocabulary {} has {} word{}: expected two or more, one per line", name,
                                vocabulary.size() == 0 ? "no" : "one", vocabulary.size() == 0 ? "s" : ""));
  return vocabulary;
}

Vocabulary load_vocabulary(const std::filesystem::path& path) {
  return parse_vocabulary(read_text_file(path), path.string());
}

SentenceText parse_sentences(std::string_view text, std::string_view name,
                             const SentenceTextOptions& options) {
  SentenceText result;
  const bool given = !options.vocabulary.empty();
  if (given) result.vocabulary = load_vocabulary(options.vocabulary);
  const ShortLines short_lines = options.skip_unexplained ? ShortLines::keep : ShortLines::offer;
  const Lines lines =
      given ? read_with_vocabulary(text, name, short_lines, result.vocabulary, options.vocabulary.string())
            : read_and_number(text, name, short_lines, result.vocabulary);
  for (std::size_t i = 0; i < lines.count(); ++i) result.short_lines += lines.line(i).size() < 2 ? 1 : 0;
  const std::ptrdiff_t size = result.vocabulary.size();
  SentenceFile sentences = count_sentences(lines, size, 3);
  if (sentences.sentences.empty())
    throw bad_input(fmt::format(
        "{} has no sentence: expected lines of three words or more, of which the last follows the others",
        name));
  if (size < 2)
    throw bad_input(fmt::format("{} has one word, {}: expected two different ones or more", name,
                                quoted_word(result.vocabulary.word(0))));
  result.sentences = std::move(sentences.sentences);
  result.lines = std::move(sentences.lines);
  result.source =
      options.collocations == CollocationSource::automatic ? choose_source(lines) : options.collocations;
  switch (result.source) {
    case CollocationSource::copy:
      check_copies(lines, result.vocabulary, name);
      result.collocations = Collocations::identity(size);
      break;
    case CollocationSource::bigrams:
      result.collocations = bigram_collocations(lines, size);
      break;
    case CollocationSource::automatic:
    case CollocationSource::lines:
      result.collocations = line_collocations(lines, size);
      if (!options.skip_unexplained) check_successors(result, name);
  }
  return result;
}

SentenceText load_sentences(const std::filesystem::path& path, const SentenceTextOptions& options) {
  return parse_sentences(read_text_file(path), path.string(), options);
}

SentenceFile parse_more_sentences(std::string_view text, std::string_view name,
                                  const Vocabulary& vocabulary) {
  SentenceFile result = count_sentences(read_with_vocabulary(text, name, ShortLines::refuse, vocabulary, ""),
                                        vocabulary.size(), 2);
  if (result.sentences.empty())
    throw bad_input(fmt::format("{} has no sentence: expected lines of two words or more", name));
  return result;
}

SentenceFile load_more_sentences(const std::filesystem::path& path, const Vocabulary& vocabulary) {
  return parse_more_sentences(read_text_file(path), path.string(), vocabulary);
}

std::string to_text(const Vocabulary& vocabulary, const Collocations& collocations,
                    const Sentences& sentences) {
  if (collocations.vocabulary_size() != vocabulary.size() || sentences.vocabulary_size() != vocabulary.size())
    throw bad_input(
        fmt::format("the vocabulary has {} words, that of the collocations {} and that of the sentences {}",
                    vocabulary.size(), collocations.vocabulary_size(), sentences.vocabulary_size()));
  for (std::ptrdiff_t x = 0; x < vocabulary.size(); ++x) {
    const std::string& word = vocabulary.word(static_cast<Token>(x));
    check_letters(word, {"the vocabulary", x + 1, 1});
    if (std::any_of(word.begin(), word.end(), is_blank))
      throw bad_input(fmt::format("word {} of the vocabulary, {}, has a blank: in a text it would be several",
                                  x, quoted_word(word)));
  }
  std::string text;
  for (Token x = 0; x < vocabulary.size(); ++x)
    for (const Collocations::Successor& successor : collocations.successors(x))
      append_line(text, vocabulary.word(x) + ' ' + vocabulary.word(successor.token) + '\n', successor.weight,
                  "a successor of " + quoted_word(vocabulary.word(x)));
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    if (sentences.tokens(i).size() < 2)
      throw bad_input(fmt::format("sentence {} has one token: in a text it would be a collocation", i));
    std::string line;
    for (const Token x : sentences.tokens(i)) line += vocabulary.word(x) + ' ';
    append_line(text, line + vocabulary.word(sentences.label(i)) + '\n', sentences.weight(i),
                fmt::format("sentence {}", i));
  }
  // A first word that begins with what looks like a byte order mark must not lose it.
  return text.starts_with(byte_order_mark) ? std::string(byte_order_mark) + text : text;
}

}  // namespace attmirror
