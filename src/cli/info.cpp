// attmirror info: what is in a file or folder.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "descent/run_text.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/data/safetensors.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/next_token/run_folders.hpp>
#include <attmirror/papers/training_folder.hpp>
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct InfoOptions {
  CommonOptions common;
  fs::path path;
};

// What an answer consists of: an object for --json, and text.
struct Answer {
  Json json;
  std::string text;
};

Answer describe_arrays(const fs::path& path, const char* kind, const NamedArrays& arrays) {
  Answer answer;
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

Answer describe_dataset(const fs::path& path) {
  const Dataset data = load_dataset(path);
  std::ptrdiff_t shortest = data.max_length(), positive = 0;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) shortest = std::min(shortest, data.length(i));
  positive = std::ranges::count(data.labels(), 1.0);
  const std::string fingerprint = fmt::format("{:016x}", data.fingerprint());
  Answer answer;
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

Answer describe_run_folder(const fs::path& path) {
  const SavedRun run = load_run(path);
  const RunConfig& config = run.config;
  const std::string status = run.result ? std::string(to_string(run.result->status)) : "unfinished";
  Answer answer;
  answer.json = {{"kind", "run"},
                 {"path", path.string()},
                 {"status", status},
                 {"step", run.step},
                 {"steps", config.steps},
                 {"records", run.records.size()},
                 {"result", run.result ? Json::parse(to_json(*run.result, config, path)) : Json()},
                 {"config", Json::parse(to_json(config))}};
  answer.text = fmt::format("{}: {} at step {} of {}\n\n", path.string(), status, run.step, config.steps);
  answer.text += fmt::format("data        {} ({} sequences, at most {} tokens, dimension {})\n",
                             config.data_path.string(), config.samples, config.max_tokens, config.dim);
  answer.text += fmt::format("model       {}\n", model_text(config));
  answer.text += fmt::format("optimizer   {}\n", to_string(config.optimizer));
  answer.text += fmt::format("start       {}\n", start_text(config));
  answer.text += fmt::format("records     {} ({}, keeps {})\n", run.records.size(), config.record,
                             to_string(config.keep));
  answer.text +=
      fmt::format("made by     attmirror {} (commit {}), {}\n", config.version, config.commit, config.isa);
  if (run.result && !run.result->selected.tokens.empty())
    answer.text += fmt::format("selected    {}\n", short_list(run.result->selected.tokens));
  if (!run.result)
    answer.text +=
        "\nIt was stopped before its end: attmirror train with the same options and --resume goes on.\n";
  if (run.records.empty()) return answer;

  Table table;
  table.columns = {{"step"}, {"loss"}, {"max softmax"}, {norm_text(config)}};
  constexpr std::size_t most = 12;
  const std::size_t count = run.records.size();
  for (std::size_t r = 0; r < count; ++r) {
    if (count > most && r >= most / 2 && r < count - most / 2) {
      if (r == most / 2) table.rows.push_back({"...", "", "", ""});
      continue;
    }
    const Record& record = run.records[r];
    table.rows.push_back({fmt::format("{}", record.step), fmt::format("{:.9g}", record.loss),
                          fmt::format("{:.6f}", record.max_softmax), fmt::format("{:.6g}", record.norm)});
  }
  answer.text += "\n" + to_text(table);
  return answer;
}

Answer describe_sweep(const fs::path& path) {
  const SweepDatabase database(path);
  const SweepHeader& header = database.header();
  std::map<std::string, std::int64_t> by_status;
  const std::array<std::string, 1> status{"status"};
  database.for_each_run(status, [&](std::span<const Cell> cells) {
    if (const auto* word = std::get_if<std::string>(&cells[0])) ++by_status[*word];
  });
  const auto names = [](const std::vector<RowColumn>& columns) {
    std::vector<std::string> result;
    for (const RowColumn& column : columns) result.push_back(column.name);
    return result;
  };
  std::vector<std::string> arrays;
  for (const auto& [name, shapes] : database.array_shapes()) arrays.push_back(name);
  Answer answer;
  answer.json = {{"kind", "sweep"},
                 {"path", path.string()},
                 {"name", header.name},
                 {"description", header.description},
                 {"rows", database.count()},
                 {"by_status", by_status},
                 {"axes", header.axes},
                 {"settings", names(header.settings)},
                 {"metrics", names(header.metrics)},
                 {"arrays", arrays},
                 {"file", header.file_text}};
  answer.text = fmt::format("{}: {} rows{}\n", path.string(), database.count(),
                            header.name.empty() ? "" : " of " + header.name);
  if (!header.description.empty()) answer.text += header.description + "\n";
  answer.text += "\n";
  for (const auto& [word, count] : by_status) answer.text += fmt::format("{:<12}{}\n", word, count);
  answer.text += fmt::format("\naxes        {}\n", fmt::join(header.axes, ", "));
  answer.text += fmt::format("metrics     {}\n", fmt::join(names(header.metrics), ", "));
  if (!arrays.empty()) answer.text += fmt::format("arrays      {}\n", fmt::join(arrays, ", "));
  answer.text += fmt::format("\nattmirror sweep {} --summary shows the numbers.\n", path.string());
  return answer;
}

// What attmirror next-token left: its answer, and where its stages are.
Answer describe_next_token(const fs::path& path) {
  const auto read = [&](const char* name) {
    std::error_code error;
    return fs::exists(path / name, error) ? Json::parse(read_text_file(path / name)) : Json();
  };
  Answer answer;
  Json stages = Json::array();
  for (const fs::path& stage : next_token_stages(path)) stages.push_back(stage.string());
  const Json config = read("config.json"), result = read("result.json");
  answer.json = {{"kind", "next-token"},
                 {"path", path.string()},
                 {"config", config},
                 {"result", result},
                 {"stages", stages}};
  answer.text = fmt::format("{}: next-token prediction, {}\n\n", path.string(),
                            result.is_object() ? result.value("status", "unknown") : "unfinished");
  answer.text += fmt::format("sentences   {} ({}), {} words\n", config.value("sentences", 0),
                             config.value("source", ""), config.value("vocabulary", 0));
  const auto number = [](const Json& stage, const std::string& name) {
    const Json value = stage.value(name, Json());
    return value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : std::string("-");
  };
  for (const Json& stage : result.is_object() ? result.value("stages", Json::array()) : Json::array())
    answer.text +=
        fmt::format("{:<12}{} steps, loss {}, accuracy {}, 1 - cos {}\n", stage.value("stage", ""),
                    stage.value("steps", 0), number(stage, "loss"), number(stage, "accuracy"),
                    number(stage, stage.value("stage", "") == "W_ov" ? "direction_W_ov" : "direction_W_kq"));
  for (const Json& stage : stages)
    answer.text += fmt::format("\nattmirror info {} shows its records.", stage.get<std::string>());
  answer.text += "\n";
  return answer;
}

// What attmirror deep train left, or is about to.
Answer describe_training(const fs::path& path) {
  const TrainingFolder folder = load_training(path);
  Answer answer;
  answer.json = {{"kind", "training"},
                 {"path", path.string()},
                 {"status", folder.status},
                 {"config", Json::object()},
                 {"trials", Json::array()}};
  for (const auto& [key, value] : folder.configuration) answer.json["config"][key] = value;
  answer.text = fmt::format("{}: training of a transformer, {}\n\n", path.string(), folder.status);
  answer.text += fmt::format("network     {}\n", folder.model_text());
  answer.text += fmt::format("optimizer   {}\n", folder.optimizer_text());
  answer.text += fmt::format("data        {}\n", folder.value("data.train"));
  if (folder.trials.empty()) answer.text += "\nNo epoch has ended yet.\n";
  Table table;
  table.columns = {{"trial"},         {"status", Align::left}, {"epochs"},
                   {"training loss"}, {"test accuracy"},       {"best"}};
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"; };
  for (const TrainingTrial& trial : folder.trials) {
    const TrainingEpoch& last = trial.epochs.back();
    const auto [best, epoch] = trial.best_test_accuracy();
    table.rows.push_back({fmt::format("{}", trial.trial), trial.status, fmt::format("{}", last.epoch),
                          number(last.train_loss), number(trial.last_test_accuracy()), number(best)});
    answer.json["trials"].push_back({{"trial", trial.trial},
                                     {"status", trial.status},
                                     {"epochs", last.epoch},
                                     {"train_loss", finite_or_null(last.train_loss)},
                                     {"train_accuracy", finite_or_null(last.train_accuracy)},
                                     {"test_accuracy", finite_or_null(trial.last_test_accuracy())},
                                     {"best_test_accuracy", finite_or_null(best)},
                                     {"best_epoch", epoch}});
  }
  if (!folder.trials.empty()) answer.text += "\n" + to_text(table);
  answer.text += fmt::format("\nattmirror report {} -o report.html draws the curves.\n", path.string());
  return answer;
}

// The files of attmirror deep say in their metadata what they are.
Answer describe_safetensors(const fs::path& path) {
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
  }
  Answer answer = describe_arrays(path, kind, file.tensors);
  answer.json["metadata"] = file.metadata;
  if (!what.empty()) answer.text = fmt::format("{}: {}\n", path.string(), what) + answer.text;
  return answer;
}

std::string first_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(8, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

Answer describe(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error))
    throw bad_input(fmt::format("cannot read {}: {}", path.string(),
                                error ? error.message() : "No such file or directory"));
  if (is_training_folder(path)) return describe_training(path);
  if (is_next_token_folder(path)) return describe_next_token(path);
  if (fs::is_directory(path)) return describe_run_folder(path);
  // The content says what a file is, whatever its name; safetensors have no magic bytes.
  const std::string head = first_bytes(path);
  if (head.starts_with("\x93NUMPY")) return describe_arrays(path, "npy", {{"array", load_npy(path)}});
  if (head == "SQLite f") return describe_sweep(path);
  if (head.starts_with("PK")) {
    const NamedArrays arrays = load_npz(path);
    const auto has = [&](const char* upper, const char* lower) {
      return arrays.contains(upper) || arrays.contains(lower);
    };
    if (has("X", "x") && has("Y", "y")) return describe_dataset(path);
    return describe_arrays(path, "npz", arrays);
  }
  const fs::path extension = path.extension();
  if (extension == ".safetensors") return describe_safetensors(path);
  if (extension == ".npz") load_npz(path);  // says what is wrong with it
  if (extension == ".npy") load_npy(path);
  throw bad_input(
      fmt::format("{} is neither an .npz, .npy or .safetensors file, a sweep's database nor a run folder",
                  path.string()));
}

}  // namespace

Subcommand add_info(CLI::App& parent) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App& app = *parent.add_subcommand("info", "say what is in a file or a run folder");
  add_path(app, "file", options->path, "FILE",
           "a dataset or other .npz, .npy, .safetensors, the database of a sweep, or the folder of a run")
      ->required();
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror info data.npz");
  return {&app, &options->common, [options] {
            const Answer answer = describe(options->path);
            if (options->common.json)
              print_json(answer.json);
            else
              print(answer.text);
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli
