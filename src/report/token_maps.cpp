#include "report/token_maps.hpp"

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "report/markup.hpp"
#include "report/page_data.hpp"
#include "report/page_html.hpp"
#include "report/palette.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

namespace {

bool continues(std::string_view token) { return token.size() > 2 && token.starts_with("##"); }

std::string_view shown(std::string_view token) { return continues(token) ? token.substr(2) : token; }

std::string token_html(const TokenText& text, std::size_t t, double value, std::string_view marked_name) {
  const std::string& token = text.tokens[t];
  const bool marked = std::ranges::find(text.marked, t) != text.marked.end();
  const bool joined = t + 1 < text.tokens.size() && continues(text.tokens[t + 1]);
  return fmt::format(
      "<button type=\"button\" class=\"token heat-{}{}{}{}\" tabindex=\"{}\" aria-pressed=\"{}\" title=\"{} "
      "{:.3f}{}\"><span class=\"piece\">{}</span><span class=\"value\">{:.2f}</span></button>",
      std::lround(value * (heat_steps - 1)), continues(token) ? " continues" : "", joined ? " joined" : "",
      marked ? " marked" : "", t == 0 ? 0 : -1, t == 0 ? "true" : "false", escape_markup(token), value,
      marked ? fmt::format(", {}", escape_markup(marked_name)) : "", escape_markup(shown(token)), value);
}

std::string options_html(std::string_view first, std::string_view word, std::int64_t count) {
  std::string html = fmt::format("<option value=\"-1\" selected>{}</option>", first);
  for (std::int64_t i = 0; i < count; ++i)
    html += fmt::format("<option value=\"{}\">{} {}</option>", i, word, i + 1);
  return html;
}

std::string controls_html(const TokenMaps& maps) {
  std::int64_t blocks = 0, heads = 0;
  for (const TokenText& text : maps.texts)
    for (const TokenAttention& one : text.models) {
      blocks = std::max(blocks, one.blocks);
      heads = std::max(heads, one.heads);
    }
  return "<div class=\"controls needs-script\"><label>Block <select class=\"block\">" +
         options_html("last", "block", blocks) + "</select></label><label>Head <select class=\"head\">" +
         options_html("mean over heads", "head", heads) +
         "</select></label><label>Scale <select class=\"scale\"><option value=\"range\" selected>0 to 1 "
         "within the "
         "row</option><option value=\"raw\">probability</option></select></label><label "
         "class=\"check\"><input "
         "type=\"checkbox\" class=\"numbers\" checked> numbers</label></div>\n";
}

std::string legend_html() {
  std::string html = "<p class=\"heat-legend\" aria-hidden=\"true\"><span>0</span>";
  for (int i = 0; i < heat_steps; ++i) html += fmt::format("<i class=\"token heat-{}\"></i>", i);
  return html + "<span>1</span></p>\n";
}

std::string note_html(std::string_view note) {
  return note.empty() ? "" : fmt::format(": {}", escape_markup(note));
}

// What the script needs of a text; the rest it reads from the page.
Json data_of(const TokenMaps& maps) {
  Json texts = Json::array();
  for (const TokenText& text : maps.texts) {
    Json models = Json::array();
    for (const TokenAttention& one : text.models)
      models.push_back({{"blocks", one.blocks},
                        {"heads", one.heads},
                        {"rows", one.rows},
                        {"p", packed_probabilities(one.probabilities)}});
    Json tokens = Json::array();
    for (const std::string& token : text.tokens) tokens.push_back(valid_utf8(token));
    texts.push_back({{"tokens", std::move(tokens)}, {"marked", text.marked}, {"models", std::move(models)}});
  }
  return {{"marked", valid_utf8(maps.marked_name)}, {"texts", std::move(texts)}};
}

void check(const TokenText& text, std::size_t at, const std::vector<std::string>& names) {
  const auto refuse = [&](const std::string& what) {
    throw bad_input(fmt::format("texts[{}] {}", at, what));
  };
  if (text.tokens.empty()) refuse("has no tokens");
  if (text.models.size() != names.size())
    refuse(fmt::format("has the attention of {} models: expected {}", text.models.size(), names.size()));
  for (const std::size_t mark : text.marked)
    if (mark >= text.tokens.size())
      refuse(fmt::format("marks token {}: it has {}", mark, text.tokens.size()));
  for (std::size_t m = 0; m < names.size(); ++m) {
    const TokenAttention& one = text.models[m];
    const auto tokens = static_cast<std::int64_t>(text.tokens.size());
    if (one.blocks < 1 || one.heads < 1 || (one.rows != 1 && one.rows != tokens))
      refuse(
          fmt::format("has {} blocks, {} heads and {} rows of {}: expected at least 1, 1, and 1 or {} rows",
                      one.blocks, one.heads, one.rows, names[m], tokens));
    const auto expected = static_cast<std::size_t>(one.blocks * one.heads * one.rows * tokens);
    if (one.probabilities.size() != expected)
      refuse(fmt::format("has {} probabilities of {}: expected {}", one.probabilities.size(), names[m],
                         expected));
    for (std::size_t i = 0; i < expected; ++i)
      if (!(one.probabilities[i] >= 0 && one.probabilities[i] <= 1.001f))
        refuse(fmt::format("has the probability {} of {} at {}: expected 0 to 1", one.probabilities[i],
                           names[m], i));
  }
}

}  // namespace

void TokenMaps::validate() const {
  if (!is_page_id(id))
    throw bad_input(fmt::format("maps id is \"{}\": expected letters, digits and dashes", valid_utf8(id)));
  if (title.empty()) throw bad_input(fmt::format("maps {} have no title", id));
  if (models.empty()) throw bad_input(fmt::format("maps {} have no models", id));
  if (texts.empty()) throw bad_input(fmt::format("maps {} have no texts", id));
  for (std::size_t i = 0; i < texts.size(); ++i) check(texts[i], i, models);
}

std::vector<double> first_row(const TokenAttention& attention, std::size_t tokens) {
  std::vector<double> row(tokens);
  const auto stride = static_cast<std::size_t>(attention.rows) * tokens;
  const auto heads = static_cast<std::size_t>(attention.heads);
  const std::size_t begin = static_cast<std::size_t>(attention.blocks - 1) * heads * stride;
  for (std::size_t t = 0; t < tokens; ++t) {
    double sum = 0;
    for (std::size_t h = 0; h < heads; ++h)
      sum += static_cast<double>(attention.probabilities[begin + h * stride + t]);
    row[t] = sum / static_cast<double>(heads);
  }
  return row;
}

std::vector<double> min_max(std::vector<double> numbers) {
  if (numbers.empty()) return numbers;
  const auto [least, most] = std::ranges::minmax(numbers);
  for (double& number : numbers) number = most > least ? (number - least) / (most - least) : 0;
  return numbers;
}

std::string verdict_html(std::string_view answer, TokenAttention::Verdict verdict) {
  if (answer.empty()) return "";
  using enum TokenAttention::Verdict;
  const Tone tone = verdict == right ? Tone::good : verdict == wrong ? Tone::bad : Tone::neutral;
  return " " + verdict_span(tone, escape_markup(answer));
}

std::string token_css() {
  std::string css;
  for (int i = 0; i < heat_steps; ++i)
    css += fmt::format(".token.heat-{0}{{background:var(--heat-{0});color:var(--heat-text-{0})}}", i);
  return css + "\n";
}

std::string html_of(const TokenMaps& maps) {
  std::string html = fmt::format(
      "<div class=\"maps\" id=\"maps_{0}\" data-name=\"{0}\" role=\"group\" "
      "aria-labelledby=\"maps_{0}_title\">\n"
      "<h3 id=\"maps_{0}_title\">{1}</h3>\n",
      maps.id, escape_markup(maps.title));
  if (!maps.caption.empty()) html += "<p>" + inline_markup(maps.caption) + "</p>\n";
  html += controls_html(maps) + legend_html() + "<ol class=\"texts\">\n";
  for (std::size_t i = 0; i < maps.texts.size(); ++i) {
    const TokenText& text = maps.texts[i];
    html += "<li><p class=\"text-title\">" + escape_markup(text.title) + "</p><div class=\"beside\">\n";
    for (std::size_t m = 0; m < maps.models.size(); ++m) {
      const std::string name = escape_markup(maps.models[m]);
      html += fmt::format(
          "<div class=\"model\"><p class=\"model-name\">{0}{1}</p><div class=\"tokens\" role=\"toolbar\" "
          "aria-label=\"Tokens of text {2}, {0}\">",
          name, note_html(text.models[m].note) + verdict_html(text.models[m].answer, text.models[m].verdict),
          i + 1);
      const std::vector<double> values = min_max(first_row(text.models[m], text.tokens.size()));
      for (std::size_t t = 0; t < values.size(); ++t)
        html += token_html(text, t, values[t], maps.marked_name);
      html += "</div><p class=\"readout needs-script\" aria-live=\"polite\"></p></div>\n";
    }
    html += "</div></li>\n";
  }
  return html + "</ol>\n<script type=\"application/json\" class=\"maps-data\">" +
         json_inside_script(dump(data_of(maps))) + "</script></div>\n";
}

}  // namespace attmirror
