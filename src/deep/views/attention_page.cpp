// Attention on texts as a page: what fits into it, and what is said of the rest.
#include "deep/views/page_parts.hpp"
#include "deep/views/view_pages.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// 16 bits a number, in base64.
std::size_t page_bytes(std::span<const TextModel> models, std::size_t tokens, AttentionRows rows) {
  std::size_t numbers = 0;
  for (const TextModel& model : models) {
    const EncoderOptions& options = model.network->options();
    numbers += static_cast<std::size_t>(options.blocks * options.heads) * tokens *
               (rows == AttentionRows::all ? tokens : 1);
  }
  return numbers * 2 / 3 * 4;
}

struct PageShare {
  std::size_t shown = 0;            // texts, from the first
  std::vector<AttentionRows> rows;  // of each that is shown
};

// First as many texts as fit with one row each; then, from the first on, all rows where there is room.
PageShare share_of(std::span<const TextModel> models, std::span<const ViewedPieces> pieces,
                   std::size_t most) {
  PageShare share;
  std::size_t used = 0;
  for (const ViewedPieces& one : pieces) {
    const std::size_t bytes = page_bytes(models, one.pieces.size(), AttentionRows::first);
    if (used + bytes > most && share.shown > 0) break;
    used += bytes;
    ++share.shown;
  }
  for (std::size_t i = 0; i < share.shown; ++i) {
    const std::size_t tokens = pieces[i].pieces.size();
    const std::size_t more =
        page_bytes(models, tokens, AttentionRows::all) - page_bytes(models, tokens, AttentionRows::first);
    const bool fits = used + more <= most;
    share.rows.push_back(fits ? AttentionRows::all : AttentionRows::first);
    if (fits) used += more;
  }
  return share;
}

TokenAttention shown_attention(TextAttention attention, const std::optional<std::int32_t>& label) {
  TokenAttention shown;
  shown.blocks = attention.blocks;
  shown.heads = attention.heads;
  shown.rows = attention.rows;
  shown.probabilities = std::move(attention.probabilities);
  const bool positive = attention.probability > 0.5;
  shown.answer = fmt::format("{} {:.3f}", label_name(positive ? 1 : 0),
                             positive ? attention.probability : 1 - attention.probability);
  if (label)
    shown.verdict =
        positive == (*label == 1) ? TokenAttention::Verdict::right : TokenAttention::Verdict::wrong;
  return shown;
}

std::string title_of(const ViewedText& text) {
  if (!text.title.empty()) return text.title;
  constexpr std::size_t longest = 160;
  if (text.text.size() <= longest) return text.text;
  std::size_t end = text.text.rfind(' ', longest);
  if (end == std::string::npos) {  // not within a letter
    end = longest;
    while (end > 0 && (static_cast<unsigned char>(text.text[end]) & 0xc0) == 0x80) --end;
  }
  return text.text.substr(0, end) + " …";
}

}  // namespace

std::vector<ViewedText> viewed_texts(std::span<const PivotalSentence> sentences) {
  std::vector<ViewedText> texts;
  for (const PivotalSentence& sentence : sentences)
    texts.push_back({.text = sentence.sentence,
                     .title = fmt::format("{} ({}, pivotal word “{}”)", sentence.sentence,
                                          label_name(sentence.label), sentence.pivotal),
                     .label = sentence.label,
                     .pivotal = sentence.pivotal});
  return texts;
}

void AttentionPageOptions::validate() const {
  if (most_bytes == 0) throw bad_input("most_bytes is 0: expected room for at least one text");
}

AttentionView attention_view(std::span<const TextModel> models, const WordPiece& vocabulary,
                             std::span<const ViewedText> texts, const AttentionPageOptions& options) {
  options.validate();
  if (models.empty()) throw bad_input("no model is given");
  if (texts.empty()) throw bad_input("no text is given");
  AttentionView view;
  view.maps.id = "attention";
  view.maps.title = "What each network attends to";
  view.maps.marked_name = "pivotal word";
  for (const TextModel& model : models) view.maps.models.push_back(model.name);

  std::vector<ViewedPieces> pieces;
  std::size_t cut = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pieces.push_back(viewed_pieces(models, vocabulary, texts[i].text, fmt::format("text {}", i + 1)));
    cut += pieces.back().cut ? 1 : 0;
  }
  const PageShare share = share_of(models, pieces, options.most_bytes);
  std::size_t first_rows = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    TextAnswer& answer = view.answers.emplace_back();
    answer.tokens = pieces[i].pieces.size();
    answer.cut = pieces[i].cut;
    if (i >= share.shown) continue;
    answer.rows = share.rows[i];
    first_rows += answer.rows == AttentionRows::first ? 1 : 0;
    TokenText& shown = view.maps.texts.emplace_back();
    shown.title = title_of(texts[i]);
    if (pieces[i].cut) shown.title += fmt::format(" (cut to its first {} tokens)", answer.tokens);
    for (const TextPiece& piece : pieces[i].pieces) shown.tokens.push_back(piece.piece);
    if (!texts[i].pivotal.empty()) shown.marked = places_of(vocabulary, texts[i].pivotal, pieces[i].pieces);
    for (const TextModel& model : models) {
      TextAttention attention = text_attention(model, pieces[i].pieces, answer.rows);
      answer.probabilities.push_back(attention.probability);
      shown.models.push_back(shown_attention(std::move(attention), texts[i].label));
    }
  }
  if (cut > 0)
    view.notes.push_back(fmt::format("{} longer than the networks can read and was cut.",
                                     counted(cut, "text is", "texts are")));
  if (first_rows > 0)
    view.notes.push_back(fmt::format(
        "For {} the page holds only the row of the first token: all rows would take more than {:.0f} MB.",
        counted(first_rows, "text", "texts"), static_cast<double>(options.most_bytes) / (1 << 20)));
  if (share.shown < texts.size())
    view.notes.push_back(
        fmt::format("The page shows the first {} of {} texts: all of them would take more than {:.0f} MB.",
                    share.shown, texts.size(), static_cast<double>(options.most_bytes) / (1 << 20)));
  return view;
}

// "adam attends most to the pivotal word in 3 of 5 texts; it answers 4 of 5 correctly."
std::string attention_conclusion(const AttentionView& view) {
  std::string conclusion;
  for (std::size_t m = 0; m < view.maps.models.size(); ++m) {
    std::size_t marked = 0, first = 0, judged = 0, right = 0;
    std::map<std::string, std::size_t> most_attended;
    for (const TokenText& text : view.maps.texts) {
      const std::vector<double> row = first_row(text.models[m], text.tokens.size());
      const auto most = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
      ++most_attended[text.tokens[most]];
      if (!text.marked.empty()) {
        ++marked;
        first += std::ranges::find(text.marked, most) != text.marked.end() ? 1 : 0;
      }
      if (text.models[m].verdict != TokenAttention::Verdict::unknown) {
        ++judged;
        right += text.models[m].verdict == TokenAttention::Verdict::right ? 1 : 0;
      }
    }
    std::string sentence;
    if (marked > 0) {
      sentence = fmt::format("{} attends most to the {} in {} of {}", view.maps.models[m],
                             view.maps.marked_name, first, counted(marked, "text", "texts"));
    } else {
      const auto favorite =
          std::ranges::max_element(most_attended, {}, [](const auto& one) { return one.second; });
      sentence = fmt::format("{} attends most to `{}` in {} of {}", view.maps.models[m], favorite->first,
                             favorite->second, counted(view.maps.texts.size(), "text", "texts"));
    }
    if (judged > 0) sentence += fmt::format(" and answers {} of {} correctly", right, judged);
    conclusion += fmt::format("{}{}", conclusion.empty() ? "" : "; ", sentence);
  }
  return conclusion + ".";
}

Paragraph attention_help() {
  return {
      "The color and number of each token show how much attention it gets from one token of the text: at first `[CLS]`, "
      "from which the answer is read, in the last block and averaged over heads. Numbers are stretched so that the "
      "smallest in the row is 0 and the largest 1, as in P1; the scale can be switched to the probabilities themselves. "
      "Click a token, or press Enter on it, to see the attention that it pays; Escape goes back, and the arrow keys move "
      "through a text."};
}

Section attention_section(const AttentionView& view) {
  Section section{.id = "attention", .title = "Attention", .blocks = {attention_help()}};
  for (const std::string& note : view.notes) section.blocks.push_back(Paragraph{note});
  section.blocks.push_back(view.maps);
  return section;
}

Page attention_page(const AttentionView& view) {
  Page page;
  page.title = "Attention maps";
  page.subtitle = fmt::format("{}, {}", counted(view.maps.models.size(), "network", "networks"),
                              counted(view.maps.texts.size(), "text", "texts"));
  page.conclusion = attention_conclusion(view);
  page.footer = version_line();
  page.sections.push_back(attention_section(view));
  return page;
}

}  // namespace attmirror::deep
