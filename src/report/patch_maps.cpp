// A map is two pictures on top of each other: the image, and one black pixel for each patch, the more transparent the
// more attention the patch gets. Neither needs a script.
#include "report/patch_maps.hpp"

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "report/markup.hpp"
#include "report/page_data.hpp"
#include "report/token_maps.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Of a patch that gets nothing, of 255. Not all black: one still sees what the network does not look at.
// patch_maps.js and page.css have the same number.
constexpr double darkest = 204;

std::string shade_url(const std::vector<double>& row, std::int64_t side) {
  const double most = *std::max_element(row.begin() + 1, row.end());
  std::vector<std::uint8_t> bytes;
  for (auto p = row.begin() + 1; p != row.end(); ++p) {
    bytes.push_back(0);
    bytes.push_back(static_cast<std::uint8_t>(std::lround(darkest * (most > 0 ? 1 - *p / most : 1))));
  }
  return picture_url(side, side, PngPixels::gray_alpha, bytes);
}

std::string picture_html(const PatchAttention& one, const std::vector<double>& row,
                         const PatchSpread& spread) {
  const auto side = static_cast<std::size_t>(one.side);
  const double step = 100.0 / static_cast<double>(one.side);
  return fmt::format(
      "<span class=\"picture\"><img class=\"shade\" alt=\"\" src=\"{}\"><i class=\"top\" "
      "style=\"left:{:.4g}%;top:{:.4g}%;width:{:.4g}%;height:{:.4g}%\"></i></span>",
      shade_url(row, one.side), step * static_cast<double>(spread.top_patch % side),
      step * static_cast<double>(spread.top_patch / side), step, step);
}

// Half a digit is rounded up, as scripts do: 1 / 16 is 6.3 % in both.
std::string percent(double share) {
  return share < 0.0995 ? fmt::format("{:.1f} %", std::round(1000 * share) / 10)
                        : fmt::format("{:.0f} %", std::round(100 * share));
}

std::string place_text(std::size_t patch, std::int64_t side) {
  const auto across = static_cast<std::size_t>(side);
  return fmt::format("row {}, column {}", patch / across + 1, patch % across + 1);
}

std::string map_name(std::int64_t block, std::int64_t head) {
  return head < 0 ? fmt::format("block {}, mean over heads", block + 1)
                  : fmt::format("block {}, head {}", block + 1, head + 1);
}

// The same words as in patch_maps.js, which writes them for the map that is chosen.
std::string spread_text(const PatchSpread& spread, std::int64_t side) {
  if (spread.top_share == 0) return "The class token pays all its attention to itself.";
  const std::int64_t patches = side * side;
  return fmt::format(
      "Top patch ({}): {} of the attention to patches; {} would be even. Spread over {:.1f} of {} patches, "
      "entropy {:.2f} of {:.2f}. The class token pays {} to itself.",
      place_text(spread.top_patch, side), percent(spread.top_share),
      percent(1 / static_cast<double>(patches)), spread.patches, patches, spread.entropy,
      std::log(static_cast<double>(patches)), percent(spread.class_token));
}

std::string small_map_html(const PatchAttention& one, std::int64_t block, std::int64_t head) {
  const std::vector<double> row = one.row(block, head);
  const PatchSpread spread = patch_spread(row);
  const bool chosen = block + 1 == one.blocks && head < 0;
  return fmt::format(
      "<td><button type=\"button\" class=\"patch-map\" data-block=\"{}\" data-head=\"{}\" "
      "aria-pressed=\"{}\" aria-label=\"{}: top patch {} with {}\">{}<span "
      "class=\"value\">{}</span></button></td>",
      block, head, chosen ? "true" : "false", map_name(block, head), place_text(spread.top_patch, one.side),
      percent(spread.top_share), picture_html(one, row, spread), percent(spread.top_share));
}

std::string grid_html(const PatchAttention& one, std::string_view name, std::size_t image) {
  std::string html = fmt::format(
      "<div class=\"scroll-sideways\" tabindex=\"0\" role=\"group\" aria-label=\"Maps of image {0}, {1}\">"
      "<table class=\"patch-grid\" style=\"--maps:{2}\"><thead><tr><td></td><th scope=\"col\">mean</th>",
      image + 1, name, one.heads + 1);
  for (std::int64_t h = 0; h < one.heads; ++h) html += fmt::format("<th scope=\"col\">head {}</th>", h + 1);
  html += "</tr></thead><tbody>\n";
  for (std::int64_t b = 0; b < one.blocks; ++b) {
    html += fmt::format("<tr><th scope=\"row\">block {}</th>", b + 1);
    for (std::int64_t h = -1; h < one.heads; ++h) html += small_map_html(one, b, h);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>";
}

std::string model_html(const PatchAttention& one, const std::string& name, std::size_t image) {
  const std::int64_t last = one.blocks - 1;
  const std::vector<double> row = one.row(last, -1);
  const PatchSpread spread = patch_spread(row);
  return fmt::format(
      "<div class=\"model\"><p class=\"model-name\">{0}{1}</p>\n<div class=\"patch-views\">"
      "<div class=\"patch-view\"><span class=\"picture\"></span><p>the image</p></div>"
      "<div class=\"patch-view chosen\" tabindex=\"0\" role=\"group\" aria-label=\"Patches of image {2}, {0}\">{3}"
      "<p>{4}</p></div></div>\n<p class=\"readout\" aria-live=\"polite\">{5}</p>\n{6}</div>\n",
      name, verdict_html(one.answer, one.verdict), image + 1, picture_html(one, row, spread),
      map_name(last, -1), spread_text(spread, one.side), grid_html(one, name, image));
}

constexpr std::string_view patch_controls =
    "<div class=\"controls needs-script\"><label>Brightest <select class=\"scale\"><option value=\"own\" "
    "selected>each map's top patch</option><option value=\"common\">the image's top patch in any map</option>"
    "</select></label><label>Image beneath <select class=\"beneath\"><option value=\"large\" "
    "selected>the large map</option><option value=\"all\">all maps</option><option value=\"none\">no "
    "map</option></select></label></div>\n";

constexpr std::string_view patch_legend =
    "<p class=\"shade-legend\"><span>no attention</span><i></i><span>top patch, outlined in the large map; its share is "
    "the number below a small one</span></p>\n";

// What the script needs; the rest it reads from the page.
Json data_of(const PatchMaps& maps) {
  Json images = Json::array();
  for (const PatchImage& image : maps.images) {
    Json models = Json::array();
    for (const PatchAttention& one : image.models)
      models.push_back({{"blocks", one.blocks},
                        {"heads", one.heads},
                        {"side", one.side},
                        {"p", packed_probabilities(one.probabilities)}});
    images.push_back({{"models", std::move(models)}});
  }
  return {{"images", std::move(images)}};
}

void check(const PatchImage& image, std::size_t at, const std::vector<std::string>& names) {
  const auto refuse = [&](const std::string& what) {
    throw bad_input(fmt::format("images[{}] {}", at, what));
  };
  constexpr std::int64_t most = 1 << 10;
  if (image.height < 1 || image.width < 1 || image.height > most || image.width > most)
    refuse(fmt::format("has {} x {} pixels: expected 1 to {} each", image.width, image.height, most));
  if (static_cast<std::int64_t>(image.pixels.size()) != 3 * image.height * image.width)
    refuse(fmt::format("has {} bytes of pixels: expected {}", image.pixels.size(),
                       3 * image.height * image.width));
  if (image.models.size() != names.size())
    refuse(fmt::format("has the attention of {} models: expected {}", image.models.size(), names.size()));
  for (std::size_t m = 0; m < names.size(); ++m) {
    const PatchAttention& one = image.models[m];
    if (one.blocks < 1 || one.heads < 1 || one.side < 1 || one.side > most)
      refuse(
          fmt::format("has {} blocks, {} heads and {} patches along a side of {}: expected at least 1 each",
                      one.blocks, one.heads, one.side, names[m]));
    const auto expected = static_cast<std::size_t>(one.blocks * one.heads * (1 + one.patches()));
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

std::vector<double> PatchAttention::row(std::int64_t block, std::int64_t head) const {
  if (block < 0 || block >= blocks || head < -1 || head >= heads)
    throw bad_input(fmt::format("block {}, head {}: expected blocks 0 to {} and heads -1 (mean) to {}", block,
                                head, blocks - 1, heads - 1));
  const auto tokens = static_cast<std::size_t>(1 + patches());
  std::vector<double> result(tokens);
  const std::int64_t first = head < 0 ? 0 : head, count = head < 0 ? heads : 1;
  for (std::int64_t h = first; h < first + count; ++h) {
    const std::size_t begin = static_cast<std::size_t>(block * heads + h) * tokens;
    for (std::size_t t = 0; t < tokens; ++t) result[t] += static_cast<double>(probabilities[begin + t]);
  }
  for (double& p : result) p /= static_cast<double>(count);
  return result;
}

PatchSpread patch_spread(std::span<const double> row) {
  PatchSpread spread;
  if (row.empty()) return spread;
  spread.class_token = row.front();
  const std::span<const double> patches = row.subspan(1);
  double sum = 0;
  for (const double p : patches) sum += p;
  if (!(sum > 0)) return spread;
  spread.top_patch = static_cast<std::size_t>(std::ranges::max_element(patches) - patches.begin());
  spread.top_share = patches[spread.top_patch] / sum;
  double squares = 0;
  for (const double p : patches) {
    const double share = p / sum;
    squares += share * share;
    if (share > 0) spread.entropy -= share * std::log(share);
  }
  spread.patches = 1 / squares;
  return spread;
}

void PatchMaps::validate() const {
  if (!is_page_id(id))
    throw bad_input(fmt::format("maps id is \"{}\": expected letters, digits and dashes", valid_utf8(id)));
  if (title.empty()) throw bad_input(fmt::format("maps {} have no title", id));
  if (models.empty()) throw bad_input(fmt::format("maps {} have no models", id));
  if (images.empty()) throw bad_input(fmt::format("maps {} have no images", id));
  for (std::size_t i = 0; i < images.size(); ++i) check(images[i], i, models);
}

std::string html_of(const PatchMaps& maps) {
  std::string html = fmt::format(
      "<div class=\"patch-maps\" id=\"maps_{0}\" data-name=\"{0}\" role=\"group\" "
      "aria-labelledby=\"maps_{0}_title\">\n<h3 id=\"maps_{0}_title\">{1}</h3>\n",
      maps.id, escape_markup(maps.title));
  if (!maps.caption.empty()) html += "<p>" + inline_markup(maps.caption) + "</p>\n";
  html += fmt::format("{}{}<ol class=\"texts\">\n", patch_controls, patch_legend);
  for (std::size_t i = 0; i < maps.images.size(); ++i) {
    const PatchImage& image = maps.images[i];
    html += fmt::format(
        "<li style=\"--image:url({})\"><p class=\"text-title\">{}</p><div class=\"beside\">\n",
        picture_url(image.width, image.height, PngPixels::rgb, image.pixels), escape_markup(image.title));
    for (std::size_t m = 0; m < maps.models.size(); ++m)
      html += model_html(image.models[m], escape_markup(maps.models[m]), i);
    html += "</div></li>\n";
  }
  return html + "</ol>\n<script type=\"application/json\" class=\"maps-data\">" +
         json_inside_script(dump(data_of(maps))) + "</script></div>\n";
}

}  // namespace attmirror
