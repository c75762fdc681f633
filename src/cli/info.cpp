// attmirror info: what is in a file or folder.
#include "cli/console.hpp"
#include "cli/info_results.hpp"
#include "cli/options.hpp"
#include "data/npy.hpp"
#include "descent/selection_json.hpp"
#include "margin/solution_summary.hpp"
#include "pages/sources.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/data/safetensors.hpp>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct InfoOptions {
  CommonOptions common;
  fs::path path;
};

InfoAnswer describe_arrays(const fs::path& path, const char* kind, const NamedArrays& arrays) {
  InfoAnswer answer;
  answer.json = {{"kind", kind}, {"path", path.string()}, {"arrays", Json::array()}};
  Table table;
  table.title = fmt::format("{}: {} with {} array{}", path.string(), kind, arrays.size(),
                            arrays.size() == 1 ? "" : "s");
  table.columns = {{"name", Align::left}, {"type", Align::left}, {"shape", Align::left}, {"bytes"}};
  for (const auto& [name, array] : arrays) {
    table.rows.push_back({name, std::string(to_string(array.dtype())), to_string(array.shape()),
                          fmt::format("{}", array.bytes().size())});
    answer.json["arrays"].push_back({{"name", name},
                                     {"dtype", to_string(array.dtype())},
                                     {"shape", array.shape()},
                                     {"bytes", array.bytes().size()}});
  }
  answer.text = to_text(table);
  return answer;
}

InfoAnswer describe_dataset(const fs::path& path) {
  const Dataset data = load_dataset(path);
  std::ptrdiff_t shortest = data.max_length(), positive = 0;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) shortest = std::min(shortest, data.length(i));
  positive = std::ranges::count(data.labels(), 1.0);
  const std::string fingerprint = fmt::format("{:016x}", data.fingerprint());
  InfoAnswer answer;
  answer.json = {{"kind", "dataset"},
                 {"path", path.string()},
                 {"samples", data.samples()},
                 {"min_tokens", shortest},
                 {"max_tokens", data.max_length()},
                 {"total_tokens", data.total_tokens()},
                 {"dim", data.dim()},
                 {"queries", data.total_queries()},
                 {"self_attention", !data.query_index().empty()},
                 {"mask", to_string(data.mask())},
                 {"labels", {{"+1", positive}, {"-1", data.total_queries() - positive}}},
                 {"decoder", data.has_decoder()},
                 {"head_weights", data.head_weights().rows},
                 {"optimal", nullptr},
                 {"fingerprint", fingerprint}};
  answer.text = fmt::format("{}: dataset, {}\n\n", path.string(), to_string(data));
  answer.text += fmt::format("sequences         {}\n", data.samples());
  answer.text += shortest == data.max_length()
                     ? fmt::format("tokens            {} each, {} in all\n", shortest, data.total_tokens())
                     : fmt::format("tokens            {} to {} each, {} in all\n", shortest,
                                   data.max_length(), data.total_tokens());
  answer.text += fmt::format("dimension         {}\n", data.dim());
  if (!data.one_query_each() || !data.query_index().empty())
    answer.text += fmt::format("queries           {}{}\n", data.total_queries(),
                               data.query_index().empty() ? "" : ", tokens of their sequences");
  answer.text +=
      fmt::format("labels            {} of +1, {} of -1\n", positive, data.total_queries() - positive);
  if (data.has_decoder()) {
    const Selection optimal = optimal_tokens(data);
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
  const Safetensors file = load_safetensors(path);
  const auto metadata = [&](const char* name) {
    const auto found = file.metadata.find(name);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  std::string what;
  const char* kind = "safetensors";
  if (const std::string network = metadata("network.kind"); !network.empty()) {
    kind = "weights";
    std::size_t numbers = 0;
    for (const auto& [name, array] : file.tensors) numbers += array.size();
    what = fmt::format("weights of a transformer, {}: {} blocks, {} heads, width {}, {} numbers\n", network,
                       metadata("network.blocks"), metadata("network.heads"), metadata("network.width"),
                       numbers);
  } else if (metadata("format").starts_with("attmirror tokens") && file.tensors.contains("labels") &&
             file.tensors.contains("ids")) {
    kind = "tokens";
    what = fmt::format("token file: {} texts of at most {} ids, {} ids in all, vocabulary of {} pieces\n",
                       file.tensors.at("labels").size(), metadata("length"), file.tensors.at("ids").size(),
                       metadata("vocabulary"));
  } else if (metadata("format") == "attmirror deep checkpoint") {
    what = "checkpoint of a training of attmirror deep train, with which it goes on\n";
  }
  InfoAnswer answer = describe_arrays(path, kind, file.tensors);
  answer.json["metadata"] = file.metadata;
  if (metadata("format") == "attmirror deep checkpoint") answer.json["content"] = "checkpoint";
  if (!what.empty()) answer.text = fmt::format("{}: {}\n", path.string(), what) + answer.text;
  return answer;
}

// The archives that attmirror itself writes, by the arrays that they have: a word for programs and one for people.
struct ArchiveContent {
  const char* word;
  std::string text;
};

std::optional<ArchiveContent> content_of(const NamedArrays& arrays) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return arrays.contains(name); });
  };
  const auto step = [&] { return arrays.at("step").to_int64().back(); };
  if (!has({"format_version"})) return std::nullopt;
  if (has({"format", "rule", "step", "seconds"}))
    return ArchiveContent{"checkpoint", fmt::format("checkpoint of a run at step {}", step())};
  if (has({"radius", "gap", "evaluations", "selected"}))
    return ArchiveContent{
        "path", fmt::format("points of a regularisation path, {} radii", arrays.at("radius").size())};
  if (has({"step", "loss", "max_softmax", "norm"}) && arrays.at("step").size() > 0)
    return ArchiveContent{
        "trace", fmt::format("records of a run, {} up to step {}", arrays.at("step").size(), step())};
  if (has({"step"}) && arrays.at("step").size() == 1)
    return ArchiveContent{"final", fmt::format("weights of a run after {} steps", step())};
  if (has({"lambda_W_ov"}) || has({"lambda_W_kq"}))
    return ArchiveContent{"targets", "max-margin targets of a next-token run"};
  if (has({"W_ov"}) || has({"W_kq"})) return ArchiveContent{"final", "weights of a next-token run"};
  return std::nullopt;
}

InfoAnswer describe_archive(const fs::path& path) {
  const NamedArrays arrays = load_npz(path);
  const auto has = [&](const char* upper, const char* lower) {
    return arrays.contains(upper) || arrays.contains(lower);
  };
  if (has("X", "x") && has("Y", "y")) return describe_dataset(path);
  InfoAnswer answer = describe_arrays(path, "npz", arrays);
  if (const auto content = content_of(arrays)) {
    answer.json["content"] = content->word;
    answer.text = fmt::format("{}: {}\n\n", path.string(), content->text) + answer.text;
  }
  return answer;
}

// A max-margin solution says what was solved; its arrays come after that.
InfoAnswer describe_solution(const fs::path& path) {
  const NamedArrays arrays = load_npz(path);
  const SolutionSummary summary = summarize_solution(arrays, path.string());
  const SolutionHalf& half = summary.solution;
  InfoAnswer answer = describe_arrays(path, "solution", arrays);
  answer.json.update({{"problem", summary.problem},
                      {"norm_kind", summary.kind},
                      {"status", half.status},
                      {"norm", finite_or_null(half.norm)},
                      {"dual", finite_or_null(half.dual)},
                      {"gap", finite_or_null(half.gap)},
                      {"constraints", half.constraints},
                      {"support", half.support.size()},
                      {"data_fingerprint", fmt::format("{:016x}", summary.data_fingerprint)}});
  std::string text = fmt::format("{}: max-margin solution, {}\n\n", path.string(), half.status);
  text += fmt::format("problem         {}, norm {}\n", summary.problem, summary.kind);
  text += fmt::format("norm            {:.9g}\n", half.norm);
  text += fmt::format("lower bound     {:.9g}, gap {:.1e}\n", half.dual, half.gap);
  text += fmt::format("constraints     {}, {} of them hold with equality\n", half.constraints,
                      half.support.size());
  text += fmt::format("solved by       {}\n", half.method);
  text += fmt::format("data            fingerprint {:016x}\n\n", summary.data_fingerprint);
  answer.text = text + answer.text;
  return answer;
}

InfoAnswer describe_file(const fs::path& path) {
  // The content says what a file is, whatever its name; safetensors have no magic bytes.
  std::ifstream file(path, std::ios::binary);
  std::string head(6, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (head == "\x93NUMPY") return describe_arrays(path, "npy", {{"array", load_npy(path)}});
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
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror info data.npz");
  return {&app, &options->common, [options] {
            const InfoAnswer answer = describe(options->path);
            if (options->common.json)
              print_json(answer.json);
            else
              print(answer.text);
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli
