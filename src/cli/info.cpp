// attmirror info: what is in a file or folder.
#include "attention/optimal_token.hpp"
#include "base/atomic_file.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/info_results.hpp"
#include "cli/info_theory.hpp"
#include "cli/masked_data.hpp"
#include "cli/options.hpp"
#include "data/array_outline.hpp"
#include "data/dataset_reader.hpp"
#include "data/npy.hpp"
#include "data/padding.hpp"
#include "descent/selection_json.hpp"
#include "margin/solution_summary.hpp"
#include "pages/sources.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct InfoOptions {
  CommonOptions common;
  fs::path path;
  TheoryCommand theory;
};

std::string plural(std::integral auto count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

InfoAnswer describe_arrays(const fs::path& path, const char* kind, const std::vector<ArrayOutline>& arrays) {
  InfoAnswer answer;
  answer.json = {{"kind", kind}, {"path", path.string()}, {"arrays", Json::array()}};
  Table table;
  table.title = fmt::format("{}: {} with {}", path.string(), kind, plural(arrays.size(), "array"));
  table.columns = {{"name", Align::left}, {"type", Align::left}, {"shape", Align::left}, {"bytes"}};
  for (const ArrayOutline& array : arrays) {
    table.rows.push_back({array.name, std::string(to_string(array.dtype)), to_string(array.shape),
                          fmt::format("{}", array.bytes())});
    answer.json["arrays"].push_back({{"name", array.name},
                                     {"dtype", to_string(array.dtype)},
                                     {"shape", array.shape},
                                     {"bytes", array.bytes()}});
  }
  answer.text = to_text(table);
  return answer;
}

std::string layout_text(const DatasetReader& reader, const std::optional<SuspectedPadding>& suspected) {
  const std::string shape = to_string(reader.tokens_shape());
  switch (reader.layout()) {
    case TokenLayout::box:
      return fmt::format(
          "box: X {}{}", shape,
          suspected ? fmt::format("; {} of zeros at the end of {}", plural(suspected->total_rows, "row"),
                                  plural(suspected->sequences, "sequence"))
                    : "");
    case TokenLayout::padded:
      return fmt::format(
          "padded: X {} with lengths; {} of padding left out", shape,
          plural(reader.tokens_shape()[0] * reader.tokens_shape()[1] - reader.frame().total_tokens(), "row"));
    case TokenLayout::ragged:
      return fmt::format("ragged: X {} with lengths", shape);
  }
  return shape;
}

// The tokens go by once and are not kept, so that a large file takes no memory.
InfoAnswer describe_dataset(const fs::path& path, const DatasetReader& reader) {
  const Dataset& data = reader.frame();
  std::optional<OptimalTokens> optimal_tokens;
  if (data.has_decoder()) optimal_tokens.emplace(data, data.decoder().eigen().row(0).transpose());
  TrailingZeroRows zeros(data);
  const std::uint64_t data_print = reader.look_through([&](std::ptrdiff_t first, ConstMatrixView rows) {
    if (optimal_tokens) optimal_tokens->add(first, rows);
    zeros.add(first, rows);
  });
  const auto suspected = data.lengths_given() ? std::nullopt : zeros.found();
  warn_of_padding(path, suspected);
  std::ptrdiff_t shortest = data.max_length(), positive = 0;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) shortest = std::min(shortest, data.length(i));
  positive = std::ranges::count(data.labels(), 1.0);
  const std::string fingerprint = fmt::format("{:016x}", data_print);
  InfoAnswer answer;
  answer.json = {{"kind", "dataset"},
                 {"path", path.string()},
                 {"samples", data.samples()},
                 {"min_tokens", shortest},
                 {"max_tokens", data.max_length()},
                 {"total_tokens", data.total_tokens()},
                 {"layout", to_string(reader.layout())},
                 {"dim", data.dim()},
                 {"queries", data.total_queries()},
                 {"self_attention", !data.query_index().empty()},
                 {"mask", to_string(data.mask())},
                 {"labels", {{"+1", positive}, {"-1", data.total_queries() - positive}}},
                 {"decoder", data.has_decoder()},
                 {"head_weights", data.head_weights().rows},
                 {"optimal", nullptr},
                 {"fingerprint", fingerprint}};
  answer.text = fmt::format("{}: dataset, {}\n\n", one_line(path.string()), to_string(data));
  answer.text += fmt::format("sequences         {}\n", data.samples());
  answer.text += shortest == data.max_length()
                     ? fmt::format("tokens            {} each, {} in all\n", shortest, data.total_tokens())
                     : fmt::format("tokens            {} to {} each, {} in all\n", shortest,
                                   data.max_length(), data.total_tokens());
  answer.text += fmt::format("layout            {}\n", layout_text(reader, suspected));
  answer.text += fmt::format("dimension         {}\n", data.dim());
  if (!data.one_query_each() || !data.query_index().empty())
    answer.text += fmt::format("queries           {}{}\n", data.total_queries(),
                               data.query_index().empty() ? "" : ", tokens of their sequences");
  answer.text +=
      fmt::format("labels            {} of +1, {} of -1\n", positive, data.total_queries() - positive);
  if (data.has_decoder()) {
    const Selection optimal = optimal_tokens->selection();
    answer.json["optimal"] = selection_json(optimal, data.equal_query_counts() ? data.query_count(0) : 0);
    answer.text += fmt::format("globally optimal  {}\n", short_list(optimal.tokens));
  } else {
    answer.text += data.head_weights().rows > 0
                       ? "decoder           none: train with --head relu, train v too, or add an array v\n"
                       : "decoder           none: train v too, or add an array v\n";
  }
  answer.text += fmt::format("fingerprint       {}\n", fingerprint);
  return answer;
}

// The files of attmirror deep say in their metadata what they are.
InfoAnswer describe_safetensors(const fs::path& path) {
  const SafetensorsOutline file = outline_safetensors(path);
  const auto metadata = [&](const char* name) {
    const auto found = file.metadata.find(name);
    return found == file.metadata.end() ? std::string() : one_line(found->second);
  };
  const auto size_of = [&](const char* name) -> std::optional<std::size_t> {
    const auto found = std::ranges::find(file.tensors, name, &ArrayOutline::name);
    return found == file.tensors.end() ? std::nullopt : std::optional(found->size());
  };
  std::string what;
  const char* kind = "safetensors";
  if (const std::string network = metadata("network.kind"); !network.empty()) {
    kind = "weights";
    std::size_t numbers = 0;
    for (const ArrayOutline& array : file.tensors) numbers += array.size();
    what = fmt::format("weights of a transformer, {}: {} blocks, {} heads, width {}, {} numbers\n", network,
                       metadata("network.blocks"), metadata("network.heads"), metadata("network.width"),
                       numbers);
  } else if (metadata("format").starts_with("attmirror tokens") && size_of("labels") && size_of("ids")) {
    kind = "tokens";
    what = fmt::format("token file: {} texts of at most {} ids, {} ids in all, vocabulary of {} pieces\n",
                       *size_of("labels"), metadata("length"), *size_of("ids"), metadata("vocabulary"));
  } else if (metadata("format") == "attmirror deep checkpoint") {
    what = "checkpoint of attmirror deep train, from which --resume continues\n";
  }
  InfoAnswer answer = describe_arrays(path, kind, file.tensors);
  answer.json["metadata"] = file.metadata;
  if (metadata("format") == "attmirror deep checkpoint") answer.json["content"] = "checkpoint";
  if (!what.empty()) answer.text = fmt::format("{}: {}\n", one_line(path.string()), what) + answer.text;
  return answer;
}

// The archives that attmirror itself writes, by the arrays that they have: a word for programs and one for people.
struct ArchiveContent {
  const char* word;
  std::string text;
};

// The last number of an array, of which nothing else is kept.
std::int64_t last_number(const NpzReader& file, const NpzReader::Entry& entry) {
  std::vector<std::byte> last;
  const NpyHeader header = file.read_pieces(
      entry, [&](std::size_t, std::span<const std::byte> bytes) { last.assign(bytes.begin(), bytes.end()); });
  const std::size_t item = item_size(header.dtype);
  if (last.size() < item)
    throw bad_input(fmt::format("{} is empty: expected a number or more", file.called(entry)));
  last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(item));
  return Array(header.dtype, {1}, last, file.called(entry)).to_int64(file.called(entry)).front();
}

std::optional<ArchiveContent> content_of(const NpzReader& file, const std::vector<ArrayOutline>& arrays) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return file.find(name) != nullptr; });
  };
  const auto size_of = [&](const char* name) {
    return std::ranges::find(arrays, name, &ArrayOutline::name)->size();
  };
  const auto step = [&] { return last_number(file, *file.find("step")); };
  if (!has({"format_version"})) return std::nullopt;
  if (has({"format", "rule", "step", "seconds"}))
    return ArchiveContent{"checkpoint", fmt::format("checkpoint of a run at step {}", step())};
  if (has({"radius", "gap", "evaluations", "selected"}))
    return ArchiveContent{"path",
                          fmt::format("points of a regularization path, {} radii", size_of("radius"))};
  if (has({"step", "loss", "max_softmax", "norm"}) && size_of("step") > 0)
    return ArchiveContent{"trace",
                          fmt::format("records of a run, {} up to step {}", size_of("step"), step())};
  if (has({"step"}) && size_of("step") == 1)
    return ArchiveContent{"final", fmt::format("weights of a run after {} steps", step())};
  if (has({"lambda_W_ov"}) || has({"lambda_W_kq"}))
    return ArchiveContent{"targets", "max-margin targets of a next-token run"};
  if (has({"W_ov"}) || has({"W_kq"})) return ArchiveContent{"final", "weights of a next-token run"};
  return std::nullopt;
}

InfoAnswer describe_archive(const fs::path& path) {
  const NpzReader file(path);
  const auto has = [&](const char* upper, const char* lower) { return file.find(upper) || file.find(lower); };
  if (has("X", "x") && has("Y", "y")) {
    try {
      return describe_dataset(path, DatasetReader(file));
    } catch (const Error& error) {
      // What the archive itself says names the file already.
      if (std::string_view(error.what()).starts_with(file.name())) throw;
      throw error.in(file.name());
    }
  }
  std::vector<ArrayOutline> arrays;
  for (const NpzReader::Entry& entry : file.entries()) {
    // All of it is read, so that damage shows, and nothing is kept.
    NpyHeader header = file.read_pieces(entry, [](std::size_t, std::span<const std::byte>) {});
    arrays.push_back({entry.key, header.dtype, std::move(header.shape)});
  }
  std::ranges::sort(arrays, {}, &ArrayOutline::name);
  InfoAnswer answer = describe_arrays(path, "npz", arrays);
  if (const auto content = content_of(file, arrays)) {
    answer.json["content"] = content->word;
    answer.text = fmt::format("{}: {}\n\n", one_line(path.string()), content->text) + answer.text;
  }
  return answer;
}

// A max-margin solution says what was solved; its arrays come after that.
InfoAnswer describe_solution(const fs::path& path) {
  const NamedArrays arrays = load_npz(path);
  const SolutionSummary summary = summarize_solution(arrays, path.string());
  const SolutionHalf& half = summary.solution;
  std::vector<ArrayOutline> outlines;
  for (const auto& [name, array] : arrays) outlines.push_back({name, array.dtype(), array.shape()});
  InfoAnswer answer = describe_arrays(path, "solution", outlines);
  answer.json.update({{"problem", summary.problem},
                      {"norm_kind", summary.kind},
                      {"status", half.status},
                      {"norm", finite_or_null(half.norm)},
                      {"dual", finite_or_null(half.dual)},
                      {"gap", finite_or_null(half.gap)},
                      {"constraints", half.constraints},
                      {"support", half.support.size()},
                      {"data_fingerprint", fmt::format("{:016x}", summary.data_fingerprint)}});
  std::string text =
      fmt::format("{}: max-margin solution, {}\n\n", one_line(path.string()), one_line(half.status));
  text += fmt::format("problem         {}, norm {}\n", one_line(summary.problem), one_line(summary.kind));
  text += fmt::format("norm            {:.9g}\n", half.norm);
  text += fmt::format("lower bound     {:.9g}, gap {:.1e}\n", half.dual, half.gap);
  text += fmt::format("constraints     {}, {} of them hold with equality\n", half.constraints,
                      half.support.size());
  text += fmt::format("solved by       {}\n", one_line(half.method));
  text += fmt::format("data            fingerprint {:016x}\n\n", summary.data_fingerprint);
  answer.text = text + answer.text;
  return answer;
}

InfoAnswer describe_npy(const fs::path& path) {
  NpyHeader header = load_npy_header(path);
  return describe_arrays(path, "npy", {{"array", header.dtype, std::move(header.shape)}});
}

InfoAnswer describe_file(const fs::path& path) {
  // The content says what a file is, whatever its name; safetensors have no magic bytes.
  const std::string head = beginning_of_file(path, 6);
  if (head == "\x93NUMPY") return describe_npy(path);
  if (head.starts_with("PK")) return describe_archive(path);
  const fs::path extension = path.extension();
  if (extension == ".safetensors") return describe_safetensors(path);
  if (extension == ".npz") load_npz(path);  // says what is wrong with it
  if (extension == ".npy") load_npy(path);
  throw bad_input(
      fmt::format("{} is neither an .npz, .npy or .safetensors file, a sweep's database nor a run folder",
                  path.string()));
}

InfoAnswer describe(const fs::path& path) {
  switch (result_kind(path)) {
    case ResultKind::run:
      return describe_run_folder(path);
    case ResultKind::path:
      return describe_path_folder(path);
    case ResultKind::next_token:
      return describe_next_token(path);
    case ResultKind::training:
      return describe_training(path);
    case ResultKind::reproduction:
      return describe_reproduction(path);
    case ResultKind::sweep:
      return describe_sweep(path);
    case ResultKind::solution:
      return describe_solution(path);
    case ResultKind::none:
      break;
  }
  return fs::is_directory(path) ? describe_run_folder(path)
                                : describe_file(path);  // says what a folder lacks
}

}  // namespace

Subcommand add_info(CLI::App& parent) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& app = *parent.add_subcommand("info", "describe a file or a folder of results");
  add_path(
      app, "file", options->path, "FILE",
      "a dataset or other .npz, .npy, .safetensors, the database of a sweep, or the folder of a run, a path, "
      "a training or a reproduction")
      ->required();
  add_theory_options(app, options->theory);
  add_common_options(app, options->common);
  app.footer("Examples:\n  attmirror info data.npz\n  attmirror info data.npz --theory --lr 0.1");
  return {&app, &options->common, [options, &app] {
            check_theory_options(app, options->theory);
            InfoAnswer answer = describe(options->path);
            if (options->theory.on)
              add_theory(app, options->theory, options->path, static_cast<int>(options->common.threads),
                         answer);
            if (options->common.json)
              print_json(answer.json);
            else
              print(answer.text);
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli
