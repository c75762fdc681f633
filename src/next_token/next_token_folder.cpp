#include "next_token/next_token_folder.hpp"

#include "base/atomic_file.hpp"
#include "data/npy.hpp"
#include "next_token/run_folders.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/next_token/sentence_text.hpp>

#include <array>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t next_token_format_version = 1;
constexpr std::array all_stages{Stage::collocation, Stage::attention, Stage::joint};
constexpr std::array<std::string_view, 10> next_token_files{
    "sentences.txt", "vocabulary.txt", "embedding.npy", "targets.npz", "final.npz",
    "result.json",   "W_ov",           "W_kq",          "joint",       "config.json"};

Array array_of(const Matrix& matrix) {
  return {{matrix.rows(), matrix.cols()}, std::span(matrix.data(), static_cast<std::size_t>(matrix.size()))};
}

Array array_of(const Vector& vector) {
  return Array(std::span(vector.data(), static_cast<std::size_t>(vector.size())));
}

void put(NamedArrays& arrays, const char* name, const std::optional<MarginSolution>& solution) {
  if (!solution) return;
  if (solution->W.allFinite()) arrays.emplace(name, array_of(solution->W));
  arrays.emplace(fmt::format("lambda_{}", name), array_of(solution->lambda));
  arrays.emplace(fmt::format("gap_{}", name), Array::scalar(solution->gap));
}

// (query, better, worse) of each comparison, in the order of lambda_W_kq.
Array comparisons(const PartialOrders& orders) {
  std::vector<std::int64_t> rows;
  for (const Token q : orders.queries())
    for (const Preference& preference : orders.preferences(q))
      rows.insert(rows.end(), {q, preference.better, preference.worse});
  return {{static_cast<std::int64_t>(rows.size() / 3), 3}, std::span<const std::int64_t>(rows)};
}

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json config_json(const NextTokenConfig& config) {
  Json generator;
  if (const auto& made = config.generator)
    generator = {{"vocab", made->vocabulary},
                 {"sentences", made->sentences},
                 {"min_length", made->min_length},
                 {"max_length", made->max_length},
                 {"order", to_string(made->order)},
                 {"optimal", made->optimal},
                 {"non_optimal", made->non_optimal},
                 {"successor", to_string(made->successor)},
                 {"repetition", to_string(made->repetition)},
                 {"seed", made->seed}};
  return {{"format", format_of(ResultKind::next_token)},
          {"format_version", next_token_format_version},
          {"source", config.source},
          {"vocabulary", config.vocabulary},
          {"sentences", config.sentences},
          {"generator", std::move(generator)},
          {"collocations", config.collocations},
          {"embedding",
           {{"kind", config.embedding}, {"dim", config.dim}, {"seed", value_or_null(config.embedding_seed)}}},
          {"data_fingerprint", fmt::format("{:016x}", config.data_fingerprint)},
          {"stages", config.stages},
          {"readout", config.readout},
          {"cyclic", config.cyclic},
          {"targets", config.targets},
          {"init", config.init},
          {"init_seed", config.init_seed},
          {"optimizer_W_ov", value_or_null(config.optimizer_W_ov)},
          {"optimizer", config.optimizer},
          {"ov_steps", value_or_null(config.ov_steps)},
          {"steps", config.steps},
          {"max_seconds", config.max_seconds},
          {"record", config.record},
          {"unseen", config.unseen},
          {"test", config.test},
          {"version", version()},
          {"commit", commit()}};
}

// Fields in which a run may differ from the one that it resumes. Each stage checks its own steps.
bool may_differ(const std::string& field) {
  return field == "steps" || field == "max_seconds" || field == "version" || field == "commit" ||
         field == "source" || field == "unseen" || field == "test";
}

// "generator.seed is 1 there and 2 here", or nothing.
std::optional<std::string> find_difference(const std::string& name, const Json& there, const Json& here) {
  if (there == here) return std::nullopt;
  if (there.is_object() && here.is_object())
    for (const auto& [key, value] : here.items())
      if (auto found = find_difference(fmt::format("{}.{}", name, key), there.value(key, Json()), value))
        return found;
  return fmt::format("{} is {} there and {} here", name, dump(there), dump(here));
}

}  // namespace

std::uint64_t NextTokenInput::fingerprint() const {
  Fingerprint data;
  data.add(embedding->fingerprint());
  data.add(collocations->fingerprint());
  data.add(sentences->fingerprint());
  for (const std::string& word : vocabulary->words()) data.add(std::string_view(word));
  return data.value();
}

NextTokenFolder::NextTokenFolder(fs::path path, const NextTokenConfig& config, ExistingResult existing)
    : path_(std::move(path)) {
  if (path_.empty()) return;
  config_ = config_json(config);
  files_ = std::make_unique<ResultFolder>(path_, ResultKind::next_token, next_token_files);
  files_->refuse_foreign_config();
  if (!is_there(path_ / "config.json")) {
    refuse_files_of_others();
    return;
  }
  if (existing == ExistingResult::refuse)
    throw bad_input(fmt::format(
        "{} already holds a run: give --resume to continue it, --overwrite to replace it, or another folder",
        path_.string()));
  resumes_ = existing == ExistingResult::resume;
  if (resumes_) check_same_run();
}

// Somebody's own files, perhaps the very sentences, must not be replaced.
void NextTokenFolder::refuse_files_of_others() const {
  for (const fs::path& file : files_->files())
    throw bad_input(fmt::format("{} already holds {}, which does not belong to a run: give another folder",
                                path_.string(), file.filename().string()));
}

void NextTokenFolder::check_same_run() const {
  const Json there = Json::parse(read_text_file(path_ / "config.json"));
  // W_ov's steps are then part of what W_kq is.
  const bool frozen = is_run_folder(stage_path(Stage::attention));
  for (const auto& [field, here] : config_.items()) {
    if (may_differ(field) || (field == "ov_steps" && !frozen)) continue;
    if (const auto difference = find_difference(field, there.value(field, Json()), here))
      throw bad_input(fmt::format("cannot resume the run in {}: {}{}", path_.string(), *difference,
                                  field == "ov_steps" ? "; W_kq was trained with that W_ov" : ""));
  }
}

fs::path NextTokenFolder::stage_path(Stage stage) const { return path_ / std::string(to_string(stage)); }

void NextTokenFolder::begin(const NextTokenInput& input) {
  if (!writes()) return;
  files_->remove_leftovers();
  if (!resumes_) {
    for (const Stage stage : all_stages) {
      std::error_code error;
      if (is_run_folder(stage_path(stage))) fs::remove_all(stage_path(stage), error);
      if (error)
        throw environment_error(
            fmt::format("cannot remove {}: {}", stage_path(stage).string(), error.message()));
    }
    for (const fs::path& file : files_->files())
      if (!fs::is_directory(file) && file.filename() != "config.json") remove_file(file);
    write_file_atomically(path_ / "config.json", dump(config_, 2) + "\n");
  }
  write_missing(input);
}

void NextTokenFolder::write_missing(const NextTokenInput& input) const {
  if (!is_there(path_ / "sentences.txt"))
    write_file_atomically(path_ / "sentences.txt",
                          to_text(*input.vocabulary, *input.collocations, *input.sentences));
  if (!is_there(path_ / "vocabulary.txt"))
    write_file_atomically(path_ / "vocabulary.txt",
                          fmt::format("{}\n", fmt::join(input.vocabulary->words(), "\n")));
  if (!input.embedding->is_one_hot() && !is_there(path_ / "embedding.npy"))
    save_npy(path_ / "embedding.npy", array_of(Matrix(input.embedding->vectors.view().eigen())));
}

void NextTokenFolder::go_on() {
  if (!writes() || went_on_) return;
  went_on_ = true;
  for (const char* file : {"result.json", "final.npz"}) files_->remove(file);
  if (resumes_) write_file_atomically(path_ / "config.json", dump(config_, 2) + "\n");
}

void NextTokenFolder::save(const NextTokenTargets& targets, const PartialOrders& orders) const {
  if (!writes() || (!targets.W_ov && !targets.W_kq)) return;
  if (resumes_ && is_there(path_ / "targets.npz")) return;  // of the same data
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(next_token_format_version));
  put(arrays, "W_ov", targets.W_ov);
  put(arrays, "W_kq", targets.W_kq);
  if (targets.W_kq) arrays.emplace("comparisons", comparisons(orders));
  if (targets.finite) arrays.emplace("W_kq_finite", array_of(targets.finite->W));
  save_npz(path_ / "targets.npz", arrays);
}

void NextTokenFolder::finish(const Parameters& last, const Json& result) const {
  if (!writes()) return;
  NamedArrays arrays;
  arrays.emplace("format_version", Array::scalar(next_token_format_version));
  for (const auto& [block, weights] : last.matrices) arrays.emplace(to_string(block), array_of(weights));
  save_npz(path_ / "final.npz", arrays);
  write_file_atomically(path_ / "result.json", dump(result) + "\n");
}

RunFolder& NextTokenFolder::open(Stage stage) {
  stages_.push_back(std::make_unique<RunFolder>(stage_path(stage)));
  return *stages_.back();
}

std::vector<fs::path> next_token_stages(const fs::path& path) {
  std::vector<fs::path> folders;
  for (const Stage stage : all_stages)
    if (const auto folder = path / std::string(to_string(stage)); is_run_folder(folder))
      folders.push_back(folder);
  return folders;
}

}  // namespace attmirror
