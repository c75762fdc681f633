#include "papers/imdb_depth_claims.hpp"

#include "papers/imdb_depth_selection.hpp"
#include "papers/imdb_published.hpp"
#include "papers/shorthand.hpp"

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

// "it wins 30 and gradient descent 14 (sign test, p = 0.023)"
std::string wins_text(const SignTest& wins) {
  return fmt::format("it wins {} and gradient descent {} ({}sign test, p = {:.2g})", wins.first, wins.second,
                     wins.ties == 0 ? "" : counted(static_cast<std::uint64_t>(wins.ties), "tie") + ", ",
                     wins.p);
}

// " Over 3, 4 and 6 blocks together the difference is 0.05 (95 % interval -0.02 to 0.12)."
std::string over_sizes_text(const DepthStudy& study) {
  const auto together = selection_over_sizes(study, claim_rows[0], claim_rows[1], &TrainingRecord::score);
  if (!together || together->first.size() < 2) return "";
  const auto& [sizes, comparison] = *together;
  return fmt::format(" Over {} together the difference is {:.3f} (95 % interval {:.3f} to {:.3f}).",
                     blocks_text(sizes), comparison.difference, comparison.low, comparison.high);
}

// The sentences at this size, then at the others.
std::string sentence_counts(const DepthStudy& study, int blocks) {
  const std::optional<SignTest> here = sentence_wins(study, blocks, claim_rows[0], claim_rows[1]);
  if (!here) return "";
  std::string text = fmt::format(
      " Sentence by sentence, with scores averaged over seeds, {}, which is about these networks and says nothing about new trainings.",
      wins_text(*here));
  std::vector<std::string> others;
  for (const int size : depth_sizes)
    if (size != blocks)
      if (const std::optional<SignTest> there = sentence_wins(study, size, claim_rows[0], claim_rows[1]))
        others.push_back(fmt::format("at {} blocks {}", size, wins_text(*there)));
  if (others.empty()) return text;
  others[0].front() = 'A';
  return text + fmt::format(" {}.", fmt::join(others, ", and "));
}

std::string review_text(const DepthClaims& claims) {
  const auto score = claims.reviews[0].comparison(), lift = claims.reviews[1].comparison();
  if (!score || !lift) return "";
  std::string verdict(claim_word(*score));
  if (sign_of(*score) != sign_of(*lift))
    verdict += fmt::format(" by the score and {} by the lift", claim_word(*lift));
  return fmt::format(
      " On test reviews, with listed sentiment words for pivotal ones, the claim {}: the mean score is {}, and such words get {} times the attention of an average word.",
      verdict, against_text(claims.reviews[0], *score), against_text(claims.reviews[1], *lift));
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

// "holds: on average 18200 against 27200 in K, ..."; nothing where a map cannot be compared.
std::optional<std::string> fewer_text(const WeightClaims& claims) {
  std::array<int, 3> signs{};
  std::vector<std::string> counts;
  for (std::size_t map = 0; map < signs.size(); ++map) {
    const DepthClaim& claim = claims.above[map];
    const auto comparison = claim.comparison();
    if (!comparison) return {};
    signs[map] = sign_of(*comparison);
    counts.push_back(
        fmt::format("{:.0f} against {:.0f} in {}", claim.ours[0].mean, claim.ours[1].mean, map_names[map]));
  }
  return fmt::format("{}: on average {}", fewer_verdict(signs), fmt::join(counts, ", "));
}

}  // namespace

std::optional<WelchComparison> DepthClaim::comparison() const {
  return ours[0].count < 2 || ours[1].count < 2 ? std::nullopt : std::optional(welch(ours[0], ours[1]));
}

DepthClaims::DepthClaims(const DepthStudy& study, int size) : blocks(size) {
  std::array<const ImdbGroup*, 2> groups{};
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
    return both([&](const ImdbGroup& group) { return group.numbers(member); });
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
          .ours = both([](const ImdbGroup& group) { return group.percent(&TrainingRecord::review_top); }),
          .decimals = 1}};
  // P1's numbers are those at the end.
  enum class Pictured { yes, no };
  const auto weights = [&](const std::string& when, Pictured pictured, const auto& weights_of) {
    WeightClaims claims;
    for (std::size_t map = 0; map < map_names.size(); ++map) {
      claims.above[map] = {.quantity = fmt::format("weights of {} above 0.06{}", map_names[map], when),
                           .ours = both([&](const ImdbGroup& group) { return weights_of(group).above[map]; }),
                           .decimals = 0};
      claims.largest[map] = {
          .quantity = fmt::format("largest weight of {}{}", map_names[map], when),
          .ours = both([&](const ImdbGroup& group) { return weights_of(group).largest[map]; })};
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
        .ours = both([&](const ImdbGroup& group) { return weights_of(group).mean_sparsity; })};
    return claims;
  };
  at_end = weights("", Pictured::yes, weights_at_end);
  if (const std::optional<EqualAccuracy> equal = equal_accuracy(study, blocks)) {
    accuracy = equal->accuracy;
    at_equal = weights(fmt::format(" at {:.1f} % training accuracy", 100 * accuracy), Pictured::no,
                       [&](const ImdbGroup& group) {
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
  table.columns = {
      {"quantity", Align::left}, {"P1: ℓ1.1"}, {"P1: ℓ2"}, {"ℓ1.1"}, {"ℓ2"}, {"difference"}, {"interval"},
      {"verdict", Align::left}};
  constexpr std::array verdicts{"lower", "not decided", "higher"};
  for (const DepthClaim* claim : claims.all()) {
    if (claim->ours[0].count == 0 && claim->ours[1].count == 0) continue;
    std::vector<std::string> row{claim->quantity};
    for (std::size_t i = 0; i < 2; ++i)
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
  if (!comparison) return fmt::format(" Token selection at {} blocks cannot be compared yet.", claims.blocks);
  return fmt::format(
             " P1's claim that ℓ1.1 mirror descent selects pivotal words better at {} blocks {}: over {} and {} seeds its mean score is {}.",
             claims.blocks, claim_word(*comparison), claims.score.ours[0].count, claims.score.ours[1].count,
             against_text(claims.score, *comparison)) +
         over_sizes_text(study) + sentence_counts(study, claims.blocks) + review_text(claims);
}

std::string sparsity_sentence(const DepthClaims& claims) {
  const std::optional<std::string> fewer = fewer_text(claims.at_end);
  if (!fewer) return fmt::format(" Weights at {} blocks cannot be compared yet.", claims.blocks);
  std::string text = fmt::format(
      " At the end of training, P1's claim that ℓ1.1 mirror descent has fewer weights above 0.06 at {} blocks {}.",
      claims.blocks, *fewer);
  if (!claims.at_equal) return text;
  if (const std::optional<std::string> there = fewer_text(*claims.at_equal))
    text +=
        fmt::format(" At {:.1f} % training accuracy, which all trainings of this size reached, the claim {}.",
                    100 * claims.accuracy, *there);
  const DepthClaim& equal = claims.at_equal->sparsity;
  const auto comparison = equal.comparison();
  if (!comparison) return text;
  constexpr std::array verdicts{"is lower", "cannot be told from that of gradient descent", "is higher"};
  return text + fmt::format(" Its {} {}: {}.", equal.quantity,
                            verdicts[static_cast<std::size_t>(sign_of(*comparison) + 1)],
                            against_text(equal, *comparison));
}

}  // namespace attmirror
