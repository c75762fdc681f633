#include "papers/imdb_depth_claims.hpp"

#include "base/and_list.hpp"
#include "papers/imdb_depth_selection.hpp"
#include "papers/imdb_published.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr std::array claim_rows{"md-1.1", "md-2"};

// "0.440 against 0.310 (95 % interval of the difference 0.107 to 0.153)"
std::string against_text(const DepthClaim& claim, const WelchComparison& comparison) {
  return fmt::format("{:.{}f} against {:.{}f} (95 % interval of the difference {:.{}f} to {:.{}f})",
                     claim.ours[0].mean, claim.decimals, claim.ours[1].mean, claim.decimals, comparison.low,
                     claim.decimals, comparison.high, claim.decimals);
}

// Who wins how many of P1's sentences, by its score and by the one over words.
std::string sentence_counts(const DepthStudy& study, int blocks) {
  const auto wins = sentence_wins(study, blocks, claim_rows[0], claim_rows[1]);
  const auto by_words =
      sentence_wins(study, blocks, claim_rows[0], claim_rows[1], &SentenceRecord::word_score);
  if (!wins || !by_words) return "";
  return fmt::format(
      " Of P1's sentences its networks win {} and those of gradient descent {} (sign test, p = {:.2g}, about these networks alone), and by words, without special tokens, {} and {} (p = {:.2g}).",
      wins->first, wins->second, wins->p, by_words->first, by_words->second, by_words->p);
}

// " Of these networks, 2 of 3 and 0 of 3 attend evenly: ..."; nothing where none does.
std::string even_text(const DepthStudy& study, int blocks) {
  const auto [first, all_first] = even_networks(study, claim_rows[0], blocks);
  const auto [second, all_second] = even_networks(study, claim_rows[1], blocks);
  if (first + second == 0) return "";
  return fmt::format(
      " But {} of {} networks of ℓ1.1 mirror descent and {} of {} of gradient descent attend almost evenly, as if over more than {:g} % of a sentence's tokens, and P1's scaling to 0 … 1 gives such attention a score of about one half, whatever the word.",
      first, all_first, second, all_second, 100 * even_share);
}

// " (Adam: 7.90)": the lift of the networks of Adam that came to their end, nothing where there are none.
std::string adam_lift_text(const DepthStudy& study, int blocks) {
  for (const char* row : adam_rows)
    if (const TrainingGroup* group = study.group_of_at_least(1, row, blocks))
      if (const SampleSummary lift = group->numbers(&TrainingRecord::review_lift); lift.count > 0)
        return fmt::format(" ({}: {:.2f})", optimizer_name(row), lift.mean);
  return "";
}

std::string review_text(const DepthStudy& study, const DepthClaims& claims) {
  const DepthClaim &score = claims.reviews[0], &lift = claims.reviews[1];
  const auto by_score = score.comparison(), by_lift = lift.comparison();
  if (!by_score || !by_lift) return "";
  std::string verdict(claim_word(*by_score));
  if (sign_of(*by_score) != sign_of(*by_lift))
    verdict += fmt::format(" by the score and {} by the lift", claim_word(*by_lift));
  return fmt::format(
      " On test reviews the claim {}: sentiment words have a mean score of {:.3f} against {:.3f}, and {:.2f} against {:.2f}{} times the attention of an average word{}.",
      verdict, score.ours[0].mean, score.ours[1].mean, lift.ours[0].mean, lift.ours[1].mean,
      adam_lift_text(study, claims.blocks),
      by_score->difference * by_lift->difference < 0 ? ", so that the two point in opposite directions" : "");
}

// The verdict on fewer large weights in all three maps.
std::string fewer_verdict(const std::array<int, 3>& signs) {
  const auto fewer = std::ranges::count(signs, -1), more = std::ranges::count(signs, 1);
  if (fewer == 3) return "holds";
  if (more == 3) return "is contradicted";
  if (fewer == 0 && more == 0) return "is not decided";
  constexpr std::array<std::string_view, 3> words{"holds for", "is open for", "is contradicted for"};
  std::vector<std::string> parts;
  for (const int sign : {-1, 1, 0}) {
    std::vector<std::string_view> maps;
    for (std::size_t map = 0; map < signs.size(); ++map)
      if (signs[map] == sign) maps.push_back(map_names[map]);
    if (!maps.empty())
      parts.push_back(
          fmt::format("{} {}", words[static_cast<std::size_t>(sign + 1)], fmt::join(maps, " and ")));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

// Whether l1.1 has fewer (-1) or more (1) large weights in each map; nothing where a map cannot be compared.
std::optional<std::array<int, 3>> signs_above(const WeightClaims& claims) {
  std::array<int, 3> signs{};
  for (std::size_t map = 0; map < signs.size(); ++map) {
    const auto comparison = claims.above[map].comparison();
    if (!comparison) return {};
    signs[map] = sign_of(*comparison);
  }
  return signs;
}

// All trainings have the same counts here and there: they ended where accuracies are equal.
bool same_counts(const WeightClaims& one, const WeightClaims& other) {
  for (std::size_t map = 0; map < one.above.size(); ++map)
    for (std::size_t i = 0; i < claim_rows.size(); ++i) {
      const SampleSummary &first = one.above[map].ours[i], &second = other.above[map].ours[i];
      if (first.count != second.count || first.mean != second.mean) return false;
    }
  return true;
}

// At equal training accuracy: the verdict on large weights, then Hoyer sparsity.
std::string equal_text(const DepthClaims& claims) {
  if (!claims.at_equal) return "";
  std::string text;
  if (const auto signs = signs_above(*claims.at_equal))
    text =
        same_counts(claims.at_end, *claims.at_equal)
            ? fmt::format(
                  " All of these trainings ended at {:.1f} % training accuracy, so these counts are at equal accuracy, too.",
                  100 * claims.accuracy)
            : fmt::format(
                  " At {:.1f} % training accuracy, which all trainings of this size reached, the claim {}.",
                  100 * claims.accuracy, fewer_verdict(*signs));
  const DepthClaim& sparsity = claims.at_equal->sparsity;
  const auto comparison = sparsity.comparison();
  if (!comparison) return text;
  constexpr std::array verdicts{"is lower", "cannot be told from that of gradient descent", "is higher"};
  return text + fmt::format(" Its {} {}: {}.", sparsity.quantity,
                            verdicts[static_cast<std::size_t>(sign_of(*comparison) + 1)],
                            against_text(sparsity, *comparison));
}

// " At 3 blocks the claim about large weights is contradicted, at 4 blocks it holds."
std::string other_sizes_text(const DepthStudy& study, int blocks) {
  std::vector<std::string> others;
  for (const int size : depth_sizes)
    if (size != blocks)
      if (const auto signs = signs_above(DepthClaims(study, size).at_end))
        others.push_back(fmt::format("{} {} blocks {} {}", others.empty() ? "At" : "at", size,
                                     others.empty() ? "the claim about large weights" : "it",
                                     fewer_verdict(*signs)));
  return others.empty() ? "" : fmt::format(" {}.", fmt::join(others, ", "));
}

}  // namespace

std::optional<WelchComparison> DepthClaim::comparison() const {
  return ours[0].count < 2 || ours[1].count < 2 ? std::nullopt : std::optional(welch(ours[0], ours[1]));
}

DepthClaims::DepthClaims(const DepthStudy& study, int size) : blocks(size) {
  std::array<const TrainingGroup*, 2> groups{};
  std::array<const PublishedPicture*, 2> pictures{};
  for (std::size_t i = 0; i < claim_rows.size(); ++i) {
    groups[i] = study.group(claim_rows[i], blocks);
    pictures[i] = published_picture(depth_config(claim_rows[i], blocks));
  }
  const auto published = [&](const auto& number) {
    return pictures[0] && pictures[1]
               ? std::optional(std::array<double, 2>{number(*pictures[0]), number(*pictures[1])})
               : std::nullopt;
  };
  const auto both = [&](const auto& sample_of) {
    return std::array{groups[0] ? sample_of(*groups[0]) : SampleSummary{},
                      groups[1] ? sample_of(*groups[1]) : SampleSummary{}};
  };
  const auto recorded = [&](RecordedNumber member) {
    return both([&](const TrainingGroup& group) { return group.numbers(member); });
  };
  score = {.quantity = "token-selection score",
           .published = published([](const PublishedPicture& picture) { return picture.score; }),
           .ours = recorded(&TrainingRecord::score)};
  reviews = {
      DepthClaim{.quantity = "score on reviews", .ours = recorded(&TrainingRecord::review_score)},
      DepthClaim{
          .quantity = "lift on reviews", .ours = recorded(&TrainingRecord::review_lift), .decimals = 2},
      DepthClaim{
          .quantity = "reviews with a listed word on top, %",
          .ours = both([](const TrainingGroup& group) { return group.percent(&TrainingRecord::review_top); }),
          .decimals = 1}};
  // P1's numbers are those at the end.
  enum class Pictured { yes, no };
  const auto weights = [&](const std::string& when, Pictured pictured, const auto& weights_of) {
    WeightClaims claims;
    for (std::size_t map = 0; map < map_names.size(); ++map) {
      claims.above[map] = {
          .quantity = fmt::format("weights of {} above 0.06{}", map_names[map], when),
          .ours = both([&](const TrainingGroup& group) { return weights_of(group).above[map]; }),
          .decimals = 0};
      claims.largest[map] = {
          .quantity = fmt::format("largest weight of {}{}", map_names[map], when),
          .ours = both([&](const TrainingGroup& group) { return weights_of(group).largest[map]; })};
      if (pictured == Pictured::yes)
        claims.above[map].published =
            published([&](const PublishedPicture& picture) { return picture.above[map]; });
    }
    if (pictured == Pictured::yes) {
      claims.largest[0].published =
          published([](const PublishedPicture& picture) { return picture.largest_key; });
      claims.largest[0].reading = PublishedPicture::largest_reading;
    }
    claims.sparsity = {
        .quantity = fmt::format("Hoyer sparsity of K, Q and V{}", when.empty() ? " at the end" : when),
        .ours = both([&](const TrainingGroup& group) { return weights_of(group).mean_sparsity; })};
    return claims;
  };
  at_end = weights("", Pictured::yes, weights_at_end);
  if (const std::optional<EqualAccuracy> equal = equal_accuracy(study, blocks)) {
    accuracy = equal->accuracy;
    at_equal = weights(fmt::format(" at {:.1f} % training accuracy", 100 * accuracy), Pictured::no,
                       [&](const TrainingGroup& group) {
                         const EqualAccuracy::Group* there = equal->of(&group);
                         return there ? there->weights : WeightSummary{};
                       });
  }
}

std::vector<const DepthClaim*> DepthClaims::all() const {
  std::vector<const DepthClaim*> list{&score};
  for (const DepthClaim& claim : reviews) list.push_back(&claim);
  const auto add = [&](const WeightClaims& claims) {
    for (const auto* maps : {&claims.above, &claims.largest})
      for (const DepthClaim& claim : *maps) list.push_back(&claim);
    list.push_back(&claims.sparsity);
  };
  add(at_end);
  if (at_equal) add(*at_equal);
  return list;
}

Table depth_claims_table(const DepthClaims& claims) {
  Table table;
  table.title = fmt::format(
      "At {} blocks, ℓ1.1 mirror descent and gradient descent:{} our means, and Welch's 95 % interval of their difference",
      claims.blocks, claims.score.published ? " P1's numbers, of one network each," : "");
  table.columns = {{"quantity", Align::left}};
  if (claims.score.published) table.columns.insert(table.columns.end(), {{"P1: ℓ1.1"}, {"P1: ℓ2"}});
  table.columns.insert(table.columns.end(),
                       {{"ℓ1.1"}, {"ℓ2"}, {"difference"}, {"interval"}, {"verdict", Align::left}});
  constexpr std::array verdicts{"lower", "not decided", "higher"};
  for (const DepthClaim* claim : claims.all()) {
    if (claim->ours[0].count == 0 && claim->ours[1].count == 0) continue;
    std::vector<std::string> row{claim->quantity};
    for (std::size_t i = 0; i < 2 && claims.score.published; ++i)
      row.push_back(claim->published ? fmt::format("{:g}", (*claim->published)[i]) : "–");
    for (const SampleSummary& sample : claim->ours) row.push_back(mean_and_count(sample, claim->decimals));
    if (const auto comparison = claim->comparison()) {
      const int decimals = claim->decimals;
      row.push_back(fmt::format("{:+.{}f}", comparison->difference, decimals));
      row.push_back(
          fmt::format("{:+.{}f} to {:+.{}f}", comparison->low, decimals, comparison->high, decimals));
      row.push_back(verdicts[static_cast<std::size_t>(sign_of(*comparison) + 1)]);
    } else {
      row.insert(row.end(), {"–", "–", verdicts[1]});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string selection_sentence(const DepthStudy& study, const DepthClaims& claims) {
  const auto comparison = claims.score.comparison();
  if (!comparison) return fmt::format("Token selection at {} blocks cannot be compared yet.", claims.blocks);
  return fmt::format(
             "P1's claim that ℓ1.1 mirror descent selects pivotal words better at {} blocks {}: over {} and {} seeds its mean score is {}.",
             claims.blocks, claim_word(*comparison), claims.score.ours[0].count, claims.score.ours[1].count,
             against_text(claims.score, *comparison)) +
         sentence_counts(study, claims.blocks) + even_text(study, claims.blocks) + review_text(study, claims);
}

std::string sparsity_sentence(const DepthStudy& study, const DepthClaims& claims) {
  const auto signs = signs_above(claims.at_end);
  if (!signs) return fmt::format("Weights at {} blocks cannot be compared yet.", claims.blocks);
  std::vector<std::string> counts;
  for (std::size_t map = 0; map < map_names.size(); ++map) {
    const auto& [first, second] = claims.at_end.above[map].ours;
    counts.push_back(fmt::format("{:.0f} against {:.0f} in {}", first.mean, second.mean, map_names[map]));
  }
  return fmt::format(
             "P1's claim that ℓ1.1 mirror descent has fewer weights above 0.06 at {} blocks {}: on average {}.",
             claims.blocks, fewer_verdict(*signs), fmt::join(counts, ", ")) +
         equal_text(claims) + other_sizes_text(study, claims.blocks);
}

std::pair<std::ptrdiff_t, std::ptrdiff_t> even_networks(const DepthStudy& study, const char* row,
                                                        int blocks) {
  const TrainingGroup* group = study.group(row, blocks);
  if (!group) return {};
  return {std::ranges::count_if(
              group->runs,
              [](const TrainingRecord* run) { return run->attended_share.value_or(0) > even_share; }),
          std::ranges::count_if(group->runs,
                                [](const TrainingRecord* run) { return run->attended_share.has_value(); })};
}

std::string sparsity_verdicts(const DepthStudy& study) {
  std::vector<std::string> verdicts;
  for (auto size = depth_sizes.rbegin(); size != depth_sizes.rend(); ++size)
    if (const auto signs = signs_above(DepthClaims(study, *size).at_end))
      verdicts.push_back(fmt::format("{} at {} blocks", fewer_verdict(*signs), *size));
  return and_list(verdicts);
}

}  // namespace attmirror
