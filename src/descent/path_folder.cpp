#include "base/atomic_file.hpp"
#include "base/json_numbers.hpp"
#include "base/result_folder.hpp"
#include "descent/block_arrays.hpp"
#include "descent/path_json.hpp"
#include "descent/saved_path.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t path_format_version = 1;
constexpr std::array<std::string_view, 3> path_file_names{"metrics.jsonl", "path.npz", "config.json"};

Json config_json(const Attention& model, const PathOptions& options, const PathSources& sources) {
  const Dataset& data = model.data();
  Json train = Json::array();
  for (const Block& block : model.trained()) train.push_back(to_string(block));
  Json given = Json::array();
  for (const Parameters& one : options.given) given.push_back(fmt::format("{:016x}", fingerprint(one)));
  return {{"format", format_of(ResultKind::path)},
          {"format_version", path_format_version},
          {"data",
           {{"path", fs::absolute(sources.data).string()},
            {"fingerprint", fmt::format("{:016x}", data.fingerprint())},
            {"mask", to_string(data.mask())}}},
          {"model",
           {{"params", to_string(model.parameterization())},
            {"rank", model.rank()},
            {"key_weights",
             sources.key_weights.empty() ? Json() : Json(fs::absolute(sources.key_weights).string())},
            {"loss", to_string(model.loss())},
            {"head", to_string(model.head())},
            {"scaled", model.logit_scale() != 1},
            {"train", train}}},
          {"kind", to_string(options.kind)},
          {"norm", to_string(options.norm)},
          {"radii", options.radii},
          {"decoder_scale", options.decoder_scale},
          {"decoder_power", options.decoder_power},
          {"starts", options.starts},
          {"seed", options.seed},
          {"start", sources.start.empty() ? Json() : Json(sources.start)},
          {"given", given},
          {"tol", options.tol},
          {"max_evaluations", options.max_evaluations},
          {"isa", to_string(active_isa())},
          {"version", version()},
          {"commit", commit()}};
}

template <class Value>
std::vector<Value> column(const std::vector<PathPoint>& points, auto get) {
  std::vector<Value> values;
  for (const PathPoint& point : points) values.push_back(get(point));
  return values;
}

NamedArrays path_arrays(const Attention& model, const std::vector<PathPoint>& points) {
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(path_format_version));
  const auto doubles = [&](const char* name, auto get) {
    const auto values = column<double>(points, get);
    arrays.emplace(name, Array(std::span<const double>(values)));
  };
  const auto integers = [&](const char* name, auto get) {
    const auto values = column<std::int64_t>(points, get);
    arrays.emplace(name, Array(std::span<const std::int64_t>(values)));
  };
  doubles("radius", [](const PathPoint& p) { return p.radius; });
  doubles("decoder_radius", [](const PathPoint& p) { return p.decoder_radius; });
  doubles("loss", [](const PathPoint& p) { return p.loss; });
  doubles("log_loss", [](const PathPoint& p) { return p.log_loss; });
  doubles("max_softmax", [](const PathPoint& p) { return p.max_softmax; });
  doubles("gap", [](const PathPoint& p) { return p.gap; });
  integers("evaluations", [](const PathPoint& p) { return p.evaluations; });
  integers("start", [](const PathPoint& p) { return p.start; });
  integers("status", [](const PathPoint& p) { return static_cast<int>(p.status); });
  std::vector<std::int64_t> selected;
  std::vector<Record> records(points.size());
  std::vector<const Record*> pointers;
  const auto queries = static_cast<std::size_t>(model.data().total_queries());
  for (std::size_t k = 0; k < points.size(); ++k) {
    std::vector<std::int64_t> tokens = points[k].selected.tokens;
    tokens.resize(queries, -1);  // a point that is not finite selects none
    selected.insert(selected.end(), tokens.begin(), tokens.end());
    records[k].parameters = points[k].parameters;
    pointers.push_back(&records[k]);
  }
  arrays.emplace("selected", Array({std::ssize(points), static_cast<std::int64_t>(queries)},
                                   std::span<const std::int64_t>(selected)));
  if (points.empty()) return arrays;
  put_stacked(arrays, "", pointers, points.front().parameters, model.trained());
  for (const Block& block : attention_blocks)
    if (!model.is_trained(block)) put_blocks(arrays, "fixed_", points.front().parameters, std::array{block});
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization());
      prompt && prompt->key_weights.size() > 0) {
    const Matrix& A = prompt->key_weights;
    arrays.emplace("key_weights",
                   Array({A.rows(), A.cols()}, std::span(A.data(), static_cast<std::size_t>(A.size()))));
  }
  return arrays;
}

// Throws unless `path` is the configuration of a path.
Json read_path_config(const fs::path& path) {
  const Json json = Json::parse(read_text_file(path), nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != format_of(ResultKind::path))
    throw bad_input(fmt::format("{} is not the configuration of a regularization path", path.string()));
  if (const Json version = json.value("format_version", Json()); version != path_format_version)
    throw bad_input(fmt::format("{}: format_version is {}: this version of attmirror reads {}", path.string(),
                                dump(version), path_format_version));
  return json;
}

// What of the settings of a path that may go on differs from those here. Other radii are the solver's
// business, and a path goes on with the data and key weights in another place, and with another version.
std::optional<std::string> first_path_difference(const Json& there, const Json& here) {
  const auto compare = [](const Json& a, const Json& b,
                          const std::string& name) -> std::optional<std::string> {
    if (a == b) return std::nullopt;
    return fmt::format("{} is {} there and {} here", name, a.is_string() ? a.get<std::string>() : dump(a),
                       b.is_string() ? b.get<std::string>() : dump(b));
  };
  if (auto found = compare(there.value("data", Json::object()).value("fingerprint", Json()),
                           here["data"]["fingerprint"], "the fingerprint of the data"))
    return found;
  for (const auto& [name, value] : here["model"].items()) {
    if (name == "key_weights") continue;
    if (auto found = compare(there.value("model", Json::object()).value(name, Json()), value, name))
      return found;
  }
  for (const char* name : {"kind", "norm", "decoder_scale", "decoder_power", "starts", "seed", "given", "tol",
                           "max_evaluations", "isa"})
    if (auto found = compare(there.value(name, Json()), here[name], name)) return found;
  return std::nullopt;
}

}  // namespace

PathFolder::PathFolder(fs::path path)
    : files_(std::make_unique<ResultFolder>(std::move(path), ResultKind::path, path_file_names)),
      held_path_(files_->holds_result()) {
  files_->refuse_foreign_config();
}

PathFolder::~PathFolder() = default;

bool PathFolder::holds_path() const { return files_->holds_result(); }

void PathFolder::refuse_others() {
  files_->refuse_foreign_config();
  // Where the file system has no locks, somebody else may have been faster.
  if (!held_path_ && holds_path())
    throw environment_error(fmt::format(
        "another process has written to {} meanwhile: its files stay as they are", files_->path().string()));
  held_path_ = true;
}

std::vector<PathPoint> PathFolder::finished(const Attention& model, const PathOptions& options,
                                            const PathSources& sources) const {
  const std::string folder = files_->path().string();
  const auto refuse = [&](const std::string& why) -> void {
    throw bad_input(fmt::format("cannot resume the path in {}: {}", folder, why));
  };
  if (!fs::exists(*files_ / "config.json")) {
    if (holds_path()) refuse("config.json is missing");
    return {};
  }
  const Json there = read_path_config(*files_ / "config.json");
  if (const auto difference = first_path_difference(there, config_json(model, options, sources)))
    refuse(*difference);
  if (!fs::exists(*files_ / "path.npz")) return {};  // killed before its first point
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization())) {
    const NamedArrays arrays = load_npz(*files_ / "path.npz");
    const auto found = arrays.find("key_weights");
    if (found != arrays.end() && to_matrix(found->second, "key_weights") != prompt->key_weights)
      refuse("the key weights are others than those it began with");
  }
  return load_path(files_->path());
}

void PathFolder::begin(const Attention& model, const PathOptions& options, const PathSources& sources) {
  refuse_others();
  files_->remove_leftovers();
  // At no time are there points beside settings that they were not computed with.
  for (const char* name : {"path.npz", "metrics.jsonl", "config.json"}) files_->remove(name);
  resume(model, options, sources);
}

void PathFolder::resume(const Attention& model, const PathOptions& options, const PathSources& sources) {
  write_file_atomically(*files_ / "config.json", dump(config_json(model, options, sources), 2) + "\n");
}

void PathFolder::save_points(const Attention& model, std::vector<PathPoint> points) {
  std::ranges::sort(points, {}, &PathPoint::radius);
  std::string metrics;
  for (const PathPoint& point : points) metrics += dump(point_json(point, model.data())) + "\n";
  write_file_atomically(*files_ / "metrics.jsonl", metrics);
  save_npz(*files_ / "path.npz", path_arrays(model, points));
}

void PathFolder::save(const Attention& model, const RegularizationPath& path, const PathSources& sources) {
  begin(model, path.options, sources);
  save_points(model, path.points);
}

void save_path(const fs::path& folder, const Attention& model, const RegularizationPath& path,
               const PathSources& sources) {
  PathFolder(folder).save(model, path, sources);
}

std::vector<PathPoint> load_path(const fs::path& folder) {
  read_path_config(folder / "config.json");
  const fs::path file = folder / "path.npz";
  const NamedArrays arrays = load_npz(file);
  try {
    const std::size_t count = get_array(arrays, "radius").size();
    std::vector<PathPoint> points(count);
    const auto doubles = [&](const char* name, double PathPoint::*member) {
      const auto values = get_doubles(arrays, name, count);
      for (std::size_t k = 0; k < count; ++k) points[k].*member = values[k];
    };
    doubles("radius", &PathPoint::radius);
    doubles("decoder_radius", &PathPoint::decoder_radius);
    doubles("loss", &PathPoint::loss);
    doubles("log_loss", &PathPoint::log_loss);
    doubles("max_softmax", &PathPoint::max_softmax);
    doubles("gap", &PathPoint::gap);
    const auto evaluations = get_int64(arrays, "evaluations", count);
    const auto start = get_int64(arrays, "start", count);
    const auto status = get_int64(arrays, "status", count);
    const std::size_t all = get_array(arrays, "selected").size();
    const auto selected = get_int64(arrays, "selected", all);
    const std::vector<Parameters> blocks = get_stacked(arrays, "", count, attention_blocks);
    const Parameters fixed = get_blocks(arrays, "fixed_", attention_blocks);
    const std::size_t queries = count > 0 ? all / count : 0;
    for (std::size_t k = 0; k < count; ++k) {
      PathPoint& point = points[k];
      if (status[k] < 0 || status[k] > static_cast<int>(PointStatus::interrupted))
        throw bad_input(fmt::format("status[{}] is {}: expected 0 to 3", k, status[k]));
      point.status = static_cast<PointStatus>(status[k]);
      point.evaluations = evaluations[k];
      point.start = static_cast<int>(start[k]);
      point.parameters = blocks[k];
      visit_blocks(point.parameters, fixed, [](const Block&, auto& into, const auto& from) {
        if (into.size() == 0) into = from;
      });
      if (queries > 0 && selected[k * queries] >= 0)
        point.selected.tokens.assign(selected.begin() + static_cast<std::ptrdiff_t>(k * queries),
                                     selected.begin() + static_cast<std::ptrdiff_t>((k + 1) * queries));
    }
    return points;
  } catch (const Error& error) {
    throw error.in(file.string());
  }
}

bool SavedPath::is_joint() const { return std::ranges::find(trained, "v") != trained.end(); }

Dataset SavedPath::load_data() const {
  Dataset data = load_dataset(data_path);
  if (mask == to_string(Mask::causal)) data = with_causal_mask(std::move(data));
  if (data.fingerprint() != data_fingerprint)
    throw bad_input(
        fmt::format("{} is not the dataset of the path: its fingerprint is {:016x}, that of the path {:016x}",
                    data_path.string(), data.fingerprint(), data_fingerprint));
  return data;
}

SavedPath load_saved_path(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const Json json = read_path_config(file);
  SavedPath path;
  try {
    const Json &data = json.at("data"), &model = json.at("model");
    path.kind = json.at("kind");
    path.norm = json.at("norm");
    path.params = model.at("params");
    path.loss = model.at("loss");
    path.head = model.at("head");
    path.mask = data.at("mask");
    path.trained = model.at("train").get<std::vector<std::string>>();
    path.data_path = data.at("path").get<std::string>();
    path.data_fingerprint = std::stoull(data.at("fingerprint").get<std::string>(), nullptr, 16);
    if (json.at("start").is_string()) path.start = json.at("start");
    path.radii = json.at("radii").get<std::vector<double>>();
    path.tol = json.at("tol");
    path.starts = whole_number<std::int64_t>(json.at("starts"));
    path.seed = whole_number<std::uint64_t>(json.at("seed"));
    path.version = json.at("version");
    path.commit = json.at("commit");
    path.isa = json.at("isa");
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // of the parser, of whole_number(), or of std::stoull
    throw bad_input(fmt::format("{} is damaged: it is not what attmirror writes there", file.string()));
  }
  path.points = load_path(folder);
  const NamedArrays arrays = load_npz(folder / "path.npz");
  if (const auto found = arrays.find("key_weights"); found != arrays.end())
    path.key_weights = to_matrix(found->second, (folder / "path.npz").string() + ": key_weights");
  return path;
}

}  // namespace attmirror
