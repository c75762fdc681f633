// Attention maps of the sentences in which networks differ most and least, and what follows from all their scores.
#include "base/and_list.hpp"
#include "deep/views/page_parts.hpp"
#include "deep/views/view_pages.hpp"
#include <attmirror/base/build_info.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// A pair of networks is decided below this p. There is no correction for the number of pairs, and the page says so.
constexpr double decided_below = 0.05;

std::vector<std::string> names_of(const DifferingView& view) {
  std::vector<std::string> names;
  for (const ModelScore& score : view.scores) names.push_back(score.model);
  return names;
}

std::vector<std::string> names_of(const DifferingView& view, std::span<const std::size_t> networks) {
  std::vector<std::string> names;
  for (const std::size_t m : networks) names.push_back(view.scores[m].model);
  return names;
}

// P1's score of a network on a sentence that has one.
double score_at(const DifferingView& view, std::size_t network, std::size_t sentence) {
  return *view.scores[network].sentences[sentence].published;
}

// The sign test of `one` against `other`, from the side of `one`.
SignTest test_of(const DifferingView& view, std::size_t one, std::size_t other) {
  const auto pair = std::ranges::find_if(view.differing.pairs, [&](const ScorePair& both) {
    return both.first == std::min(one, other) && both.second == std::max(one, other);
  });
  SignTest test = pair->published;
  if (one > other) std::swap(test.first, test.second);
  return test;
}

std::string counts_text(const SignTest& test) { return fmt::format("{} : {}", test.first, test.second); }

AttentionView group_view(std::span<const TextModel> models, const WordPiece& vocabulary,
                         const DifferingView& view, std::span<const SentenceRange> group,
                         const AttentionPageOptions& options) {
  std::vector<PivotalSentence> sentences;
  for (const SentenceRange& one : group) sentences.push_back(view.sentences[one.sentence]);
  std::vector<ViewedText> texts = viewed_texts(sentences);
  for (std::size_t i = 0; i < group.size(); ++i)
    texts[i].title += fmt::format(": scores differ by {:.3f}", group[i].range);
  AttentionView result = attention_view(models, vocabulary, texts, options);
  for (std::size_t i = 0; i < result.maps.texts.size(); ++i)
    for (std::size_t m = 0; m < models.size(); ++m) {
      const auto is_one_of = [&](const std::vector<std::size_t>& networks) {
        return group[i].range > 0 && std::ranges::find(networks, m) != networks.end();
      };
      result.maps.texts[i].models[m].note =
          fmt::format("score {:.3f}{}", score_at(view, m, group[i].sentence),
                      is_one_of(group[i].highest)  ? ", the highest"
                      : is_one_of(group[i].lowest) ? ", the lowest"
                                                   : "");
    }
  return result;
}

// "Sentence by sentence, the sign test confirms this against gd (30 : 14 wins, p = 0.023), but not against adam (24 : 20 wins, p = 0.65)."
std::string tests_sentence(const DifferingView& view, std::size_t best) {
  std::vector<std::string> confirmed, open, contrary;
  for (std::size_t m = 0; m < view.scores.size(); ++m) {
    if (m == best) continue;
    const SignTest test = test_of(view, best, m);
    auto& group = test.p >= decided_below ? open : test.first > test.second ? confirmed : contrary;
    group.push_back(fmt::format("{} ({} wins, p = {:.2g})", view.scores[m].model, counts_text(test), test.p));
  }
  std::string sentence = "Sentence by sentence, the sign test ";
  if (!confirmed.empty()) sentence += "confirms this against " + and_list(confirmed);
  if (!open.empty())
    sentence += fmt::format(
        "{} {}", confirmed.empty() ? "does not confirm this against" : ", but not against", and_list(open));
  if (!contrary.empty())
    sentence +=
        fmt::format("{} in favor of {}", confirmed.empty() && open.empty() ? "decides" : "; it decides",
                    and_list(contrary));
  return sentence + ".";
}

std::string best_sentence(const DifferingView& view) {
  const auto mean = [&](std::size_t m) { return view.differing.networks[m].all.mean; };
  std::vector<std::size_t> best{0};
  for (std::size_t m = 1; m < view.scores.size(); ++m) {
    if (mean(m) < mean(best.front())) continue;
    if (mean(m) > mean(best.front())) best.clear();
    best.push_back(m);
  }
  const std::string score = mean_text(view.differing.networks[best.front()].all);
  if (best.size() > 1)
    return fmt::format(
        "Over all {} sentences with a score, {} share the highest mean score of the pivotal word, {}.",
        view.differing.scored, and_list(names_of(view, best)), score);
  return fmt::format(
      "Over all {} sentences with a score, {} attends most to the pivotal word, with the highest mean score, {} (1 is "
      "the most attention of all tokens). {}",
      view.differing.scored, view.scores[best.front()].model, score, tests_sentence(view, best.front()));
}

std::string range_sentence(const DifferingView& view) {
  const SentenceRange& most = view.differing.most.front();
  if (most.range == 0) return "The networks have the same score in every sentence.";
  const auto side = [&](const std::vector<std::size_t>& networks, std::string_view word) {
    return fmt::format("{} {} the {} score, {:.3f}", and_list(names_of(view, networks)),
                       networks.size() == 1 ? "has" : "have", word,
                       score_at(view, networks.front(), most.sentence));
  };
  const auto equals = std::ranges::count(view.differing.most, most.range, &SentenceRange::range);
  const std::string where = equals == 1
                                ? fmt::format("in “{}”", view.sentences[most.sentence].sentence)
                                : fmt::format("in {} of the sentences chosen, of which the first is “{}”",
                                              equals, view.sentences[most.sentence].sentence);
  return fmt::format("They differ most {}: {}, and {}.", where, side(most.highest, "highest"),
                     side(most.lowest, "lowest"));
}

// Whom the sign test decides for, in words.
std::string decision(const DifferingView& view, const ScorePair& pair, const SignTest& test) {
  if (test.p >= decided_below) return "neither";
  return view.scores[test.first > test.second ? pair.first : pair.second].model;
}

// "The two scores do not agree on whom the sign test favors: a : b (neither by P1's score, b over words)."
std::string ways_sentence(const DifferingView& view) {
  std::vector<std::string> unlike;
  for (const ScorePair& pair : view.differing.pairs) {
    const std::string by_token = decision(view, pair, pair.published),
                      by_word = decision(view, pair, pair.words);
    if (by_token != by_word)
      unlike.push_back(fmt::format("{} : {} ({} by P1's score, {} over words)", view.scores[pair.first].model,
                                   view.scores[pair.second].model, by_token, by_word));
  }
  if (unlike.empty()) return "The sign test decides alike by both scores for every pair.";
  return fmt::format("The two scores do not agree on whom the sign test favors: {}.", and_list(unlike));
}

std::size_t chosen_count(const DifferingView& view) {
  return view.differing.most.size() + view.differing.least.size();
}

std::size_t shown_count(const DifferingView& view) {
  return view.most.maps.texts.size() + view.least.maps.texts.size();
}

// Where the page lacks room for some of the sentences.
std::string room_sentence(const DifferingView& view) {
  if (shown_count(view) == chosen_count(view)) return "";
  return fmt::format(" The page has room for {} of these {}.", shown_count(view),
                     counted(chosen_count(view), "sentence", "sentences"));
}

Section networks_section(const DifferingView& view) {
  const DifferingSentences& differing = view.differing;
  Section section{.id = "networks", .title = "Which network selects the word that decides?", .blocks = {}};
  section.blocks.push_back(Paragraph{fmt::format(
      "P1's score of a sentence is the attention that `[CLS]` pays to the pivotal word in the last block, averaged over "
      "heads and scaled to 0 … 1 over all tokens, including `[CLS]` and `[SEP]`. {} of {} sentences have a score. "
      "Networks differ in a sentence by the range of their scores, the highest minus the lowest. The page chooses the {} "
      "and, of the others, the {}; sentences with the same range are in the order of the file.{}",
      differing.scored, view.sentences.size(),
      counted(differing.most.size(), "sentence with the largest range", "sentences with the largest ranges"),
      counted(differing.least.size(), "sentence with the smallest", "sentences with the smallest"),
      room_sentence(view))});
  section.blocks.push_back(TableBlock{.id = "networks", .table = differing_table(view), .cards = true});
  section.blocks.push_back(Paragraph{fmt::format(
      "± is a standard error over sentences. Tokens attended is 1 / Σ s², the number of tokens over which attention is "
      "spread, of {:.1f} in a sentence on average: scaling exaggerates small differences, so the score of a network that "
      "attends to nearly all tokens alike is nearly random. A network wins a sentence if it alone has the highest score{}. Against {}, "
      "the first network, the wins of the two alone are counted, and p is that of the two-sided sign test: the "
      "probability of so uneven a count if both were equally good, with ties left out. A pair counts as decided if p is "
      "below {}, without a correction for the number of [pairs](#pairs). Sentences that are chosen by their "
      "scores are not a sample, so judge the networks by all sentences, not by these.",
      differing.tokens,
      differing.ties > 0
          ? fmt::format("; in {} several share it",
                        counted(static_cast<std::size_t>(differing.ties), "sentence", "sentences"))
          : "",
      view.scores.front().model, decided_below)});
  return section;
}

Section group_section(std::string id, std::string title, const AttentionView& view) {
  Section section{.id = std::move(id), .title = std::move(title), .blocks = {}};
  for (const std::string& note : view.notes) section.blocks.push_back(Paragraph{note});
  section.blocks.push_back(view.maps);
  return section;
}

}  // namespace

DifferingView differing_view(std::span<const TextModel> models, const WordPiece& vocabulary,
                             std::span<const PivotalSentence> sentences, std::int64_t count,
                             const AttentionPageOptions& options) {
  options.validate();
  DifferingView view;
  view.sentences.assign(sentences.begin(), sentences.end());
  view.scores = model_scores(models, vocabulary, sentences);
  view.differing = differing_sentences(view.scores, count);
  const AttentionPageOptions half{.most_bytes = std::max<std::size_t>(options.most_bytes / 2, 1)};
  view.most = group_view(models, vocabulary, view, view.differing.most, half);
  view.least = group_view(models, vocabulary, view, view.differing.least, half);
  view.most.maps.id = "differ-most";
  view.most.maps.title = "Largest range of scores first";
  view.least.maps.id = "differ-least";
  view.least.maps.title = "Smallest range of scores first";
  return view;
}

Table differing_table(const DifferingView& view) {
  const DifferingSentences& differing = view.differing;
  Table table;
  table.title = "P1's score by network";
  table.columns = {{"network", Align::left},
                   {fmt::format("mean of all {}", differing.scored)},
                   {fmt::format("mean of the {} chosen", chosen_count(view))},
                   {"tokens attended"},
                   {"wins"},
                   {fmt::format("against {}", view.scores.front().model)},
                   {"ties"},
                   {"p"}};
  for (std::size_t m = 0; m < view.scores.size(); ++m) {
    const NetworkStanding& one = differing.networks[m];
    auto& row = table.rows.emplace_back();
    // Chosen sentences are not a sample, so their mean has no standard error.
    row = {view.scores[m].model, mean_text(one.all), fmt::format("{:.4f}", one.chosen),
           fmt::format("{:.2f}", one.tokens_attended), fmt::format("{}", one.wins)};
    if (m == 0) {
      row.insert(row.end(), {"–", "–", "–"});
      continue;
    }
    const SignTest test = test_of(view, m, 0);
    row.insert(row.end(), {counts_text(test), fmt::format("{}", test.ties), fmt::format("{:.2g}", test.p)});
  }
  return table;
}

Page differing_page(const DifferingView& view) {
  Page page;
  page.title = "Where networks attend differently";
  page.subtitle = fmt::format("{} networks, {} of {} sentences", view.scores.size(), shown_count(view),
                              view.sentences.size());
  page.conclusion = best_sentence(view) + " " + range_sentence(view);
  page.footer = version_line();
  page.sections.push_back(networks_section(view));
  page.sections.push_back(group_section("most", "Where the networks differ most", view.most));
  page.sections.back().blocks.insert(page.sections.back().blocks.begin(), attention_help());
  page.sections.push_back(group_section("least", "Where the networks differ least", view.least));
  Section pairs{.id = "pairs", .title = "Each pair of networks", .blocks = {}};
  pairs.blocks.push_back(Paragraph{
      "Of two networks, the one that gives the pivotal word the higher score wins the sentence. Beside P1's score there is "
      "the score over words, in which a word gets the sum of its pieces' attention and `[CLS]` and `[SEP]` are left out."});
  pairs.blocks.push_back(TableBlock{
      .id = "pairs", .table = pairs_table(view.differing.pairs, names_of(view), "sentences", "words, sum")});
  pairs.blocks.push_back(Paragraph{ways_sentence(view)});
  const Table dropped = dropped_table(view.scores.front(), view.sentences);
  if (!dropped.rows.empty()) pairs.blocks.push_back(TableBlock{.id = "dropped", .table = dropped});
  page.sections.push_back(std::move(pairs));
  return page;
}

}  // namespace attmirror::deep
