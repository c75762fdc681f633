// Attention on images as a page: what fits into it, and what the maps say in numbers.
#include "deep/views/page_parts.hpp"
#include "deep/views/view_pages.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// At most: the numbers in 16 bits each, and a picture of 2 bytes a patch for each map, both in base64; the frame of a
// picture and the HTML around it.
std::size_t image_bytes(std::span<const ImageModel> models) {
  constexpr std::size_t around = 700;
  std::size_t bytes = 0;
  for (const ImageModel& model : models) {
    const VitOptions& options = model.network->options();
    const auto blocks = static_cast<std::size_t>(options.blocks),
               heads = static_cast<std::size_t>(options.heads),
               tokens = static_cast<std::size_t>(options.tokens());
    bytes += blocks * heads * tokens * 2 / 3 * 4 + (blocks * (heads + 1) + 1) * (tokens * 2 / 3 * 4 + around);
  }
  return bytes;
}

// Planes become pixels.
PatchImage shown_image(const ImageSet& images, std::int64_t index) {
  PatchImage shown;
  shown.height = images.height;
  shown.width = images.width;
  const std::int64_t plane = images.height * images.width, begin = index * images.image_bytes();
  for (std::int64_t i = 0; i < plane; ++i)
    for (std::int64_t c = 0; c < 3; ++c)
      shown.pixels.push_back(images.pixels[static_cast<std::size_t>(begin + c * plane + i)]);
  return shown;
}

// Of the map that a page shows first.
PatchSpread answering_spread(const ImageAttention& one) {
  return patch_spread(one.patches.row(one.patches.blocks - 1, -1));
}

bool is_right(const ImageAnswer& answer, std::size_t model) {
  return answer.models[model].answer() == answer.label;
}

// The networks whose patches are the same parts of an image, and so can be compared one by one.
bool have_the_same_patches(const ImageAnswer& answer) {
  return std::ranges::all_of(answer.models, [&](const ImageAttention& one) {
    return one.patches.side == answer.models.front().patches.side;
  });
}

// "md answers 3 of 4 images correctly and spreads the attention of its class token over 41.2 of 64 patches, on average;
// ..."
std::string image_conclusion(const ImageView& view) {
  std::string conclusion;
  std::vector<const ImageAnswer*> shown;
  for (const ImageAnswer& answer : view.answers)
    if (!answer.models.empty()) shown.push_back(&answer);
  for (std::size_t m = 0; m < view.maps.models.size(); ++m) {
    std::size_t right = 0;
    double patches = 0;
    for (const ImageAnswer* answer : shown) {
      right += is_right(*answer, m) ? 1 : 0;
      patches += answering_spread(answer->models[m]).patches / static_cast<double>(shown.size());
    }
    conclusion += fmt::format(
        "{}{} answers {} of {} correctly and spreads the attention of its class token over {:.1f} of {} "
        "patches{}",
        conclusion.empty() ? "" : "; ", view.maps.models[m], right, counted(shown.size(), "image", "images"),
        patches, shown.front()->models[m].patches.patches(), shown.size() == 1 ? "" : " on average");
  }
  if (view.maps.models.size() == 2 && have_the_same_patches(*shown.front())) {
    const auto same = std::ranges::count_if(shown, [](const ImageAnswer* answer) {
      return answering_spread(answer->models[0]).top_patch == answering_spread(answer->models[1]).top_patch;
    });
    conclusion += fmt::format("; both attend most to the same patch in {} of {}", same,
                              counted(shown.size(), "image", "images"));
  }
  return conclusion + ".";
}

}  // namespace

ImageView image_view(std::span<const ImageModel> models, const ImageSet& images,
                     std::span<const std::string> classes, std::span<const std::int64_t> chosen,
                     const AttentionPageOptions& options) {
  options.validate();
  if (models.empty()) throw bad_input("no model is given");
  if (chosen.empty()) throw bad_input("no image is given");
  if (static_cast<std::int64_t>(classes.size()) != images.classes)
    throw bad_input(fmt::format("classes has {} names: expected {}", classes.size(), images.classes));
  for (const std::int64_t index : chosen)
    if (index < 0 || index >= images.count())
      throw bad_input(fmt::format("image is {}: expected 0 to {}", index, images.count() - 1));
  ImageView view;
  view.classes.assign(classes.begin(), classes.end());
  view.maps.id = "attention";
  view.maps.title = "Where the class token of each network looks";
  for (const ImageModel& model : models) view.maps.models.push_back(model.name);
  const std::size_t room = std::max<std::size_t>(1, options.most_bytes / image_bytes(models));
  for (const std::int64_t index : chosen) {
    ImageAnswer& answer = view.answers.emplace_back();
    answer.image = index;
    answer.label = images.labels[static_cast<std::size_t>(index)];
    if (view.maps.images.size() == room) continue;
    for (const ImageModel& model : models) answer.models.push_back(image_attention(model, images, index));
    PatchImage& shown = view.maps.images.emplace_back(shown_image(images, index));
    shown.title = fmt::format("Image {}: {}", index, view.classes[static_cast<std::size_t>(answer.label)]);
    for (std::size_t m = 0; m < models.size(); ++m) {
      const ImageAttention& one = answer.models[m];
      PatchAttention& patches = shown.models.emplace_back(one.patches);
      const auto said = static_cast<std::size_t>(one.answer());
      patches.answer = fmt::format("{} {:.3f}", view.classes[said], one.probabilities[said]);
      patches.verdict = is_right(answer, m) ? TokenAttention::Verdict::right : TokenAttention::Verdict::wrong;
    }
  }
  if (view.maps.images.size() < chosen.size())
    view.notes.push_back(fmt::format(
        "The page shows the first {} of {} images: all of them would take more than {:.0f} MB.",
        view.maps.images.size(), chosen.size(), static_cast<double>(options.most_bytes) / (1 << 20)));
  return view;
}

Table image_attention_table(const ImageView& view) {
  Table table;
  table.title = "The last block, mean over heads";
  table.columns = {{"class", Align::left}, {"image"}, {"network", Align::left}, {"answer", Align::left}};
  for (const char* name : {"probability", "of the true class", "top patch", "its share", "patches attended",
                           "entropy", "class token"})
    table.columns.push_back({name});
  for (const ImageAnswer& answer : view.answers)
    for (std::size_t m = 0; m < answer.models.size(); ++m) {
      const ImageAttention& one = answer.models[m];
      const PatchSpread spread = answering_spread(one);
      const auto side = static_cast<std::size_t>(one.patches.side);
      const auto label = static_cast<std::size_t>(answer.label),
                 said = static_cast<std::size_t>(one.answer());
      table.rows.push_back({view.classes[label], fmt::format("{}", answer.image), view.maps.models[m],
                            view.classes[said], fmt::format("{:.3f}", one.probabilities[said]),
                            fmt::format("{:.3f}", one.probabilities[label]),
                            fmt::format("{}, {}", spread.top_patch / side + 1, spread.top_patch % side + 1),
                            fmt::format("{:.1f} %", 100 * spread.top_share),
                            fmt::format("{:.1f} of {}", spread.patches, one.patches.patches()),
                            fmt::format("{:.2f} of {:.2f}", spread.entropy,
                                        std::log(static_cast<double>(one.patches.patches()))),
                            fmt::format("{:.1f} %", 100 * spread.class_token)});
    }
  return table;
}

Page image_attention_page(const ImageView& view) {
  Page page;
  page.title = "Attention maps";
  page.subtitle = fmt::format("{}, {}", counted(view.maps.models.size(), "network", "networks"),
                              counted(view.maps.images.size(), "image", "images"));
  page.conclusion = image_conclusion(view);
  page.footer = version_line();
  Section section{.id = "attention", .title = "Attention", .blocks = {}};
  section.blocks.push_back(Paragraph{
      "The large map is the image, darkened where the class token, from which the answer is read, does not look: a patch is "
      "as bright as its probability divided by that of the map's top patch. Even attention leaves the image as it is, "
      "and what is dark in it stays dark: take it away with the second menu to compare patches. At first it is the map "
      "of the last block, averaged over heads. Small maps show the same without the image, for every block and head; click one to enlarge it in all networks. Point at a patch of the large map, or move through it with "
      "the arrow keys, to see its probability."});
  for (const std::string& note : view.notes) section.blocks.push_back(Paragraph{note});
  section.blocks.push_back(view.maps);
  page.sections.push_back(std::move(section));

  TableBlock table{.id = "images", .table = image_attention_table(view)};
  for (const ImageAnswer& answer : view.answers)
    for (std::size_t m = 0; m < answer.models.size(); ++m)
      table.tones.push_back(is_right(answer, m) ? Tone::good : Tone::bad);
  table.tone_column = 3;
  table.legend = {{Tone::good, "the right class"}, {Tone::bad, "another class"}};
  table.cards = true;
  Section numbers{.id = "numbers", .title = "In numbers", .blocks = {}};
  numbers.blocks.push_back(Paragraph{
      "Probability is the network's, of its answer and of the true class. Top patch is the row and the column of the patch that gets most, counted from the upper left corner. The other numbers but the last are of the attention to patches alone: the top patch's share, the patches attended (1 / Σ s²: even attention to so many would be as concentrated) and the entropy (−Σ s log s, beside that of even attention). Class token is what the class token pays to itself."});
  numbers.blocks.push_back(std::move(table));
  page.sections.push_back(std::move(numbers));
  return page;
}

}  // namespace attmirror::deep
