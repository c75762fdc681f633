#include "deep/trainer/train_checkpoint.hpp"

#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include "deep/trainer/train_json.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/data/safetensors.hpp>

#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

constexpr std::string_view checkpoint_format = "attmirror deep checkpoint";
constexpr std::int64_t checkpoint_version = 1;
constexpr std::string_view weights_prefix = "weights.", optimizer_prefix = "optimizer.";

void add_bytes(Fingerprint& print, std::span<const std::byte> bytes) {
  print.add(static_cast<std::ptrdiff_t>(bytes.size()));
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    print.add(word);
    bytes = bytes.subspan(size);
  }
}

std::string content_checksum(const Safetensors& content, const std::string& state) {
  Fingerprint print;
  print.add(std::string_view(state));
  for (const auto& [name, array] : content.tensors) {
    print.add(std::string_view(name));
    print.add(attmirror::to_string(array.dtype()));
    for (const std::int64_t axis : array.shape()) print.add(std::ptrdiff_t{axis});
    add_bytes(print, array.bytes());
  }
  return fmt::format("{:016x}", print.value());
}

Json sums_json(const EpochSums& sums) {
  return {{"loss", sums.loss},
          {"correct", sums.correct},
          {"samples", sums.samples},
          {"tokens", sums.tokens},
          {"seconds", sums.seconds}};
}

TrainCheckpoint from_state(const Json& json) {
  TrainCheckpoint checkpoint;
  checkpoint.config = json.at("config").get<std::string>();
  checkpoint.train_fingerprint = json.at("train_fingerprint").get<std::uint64_t>();
  checkpoint.test_fingerprint = json.at("test_fingerprint").get<std::uint64_t>();
  for (const Json& trial : json.at("finished")) checkpoint.finished.push_back(trial_from_json(trial));
  checkpoint.current = trial_from_json(json.at("current"));
  checkpoint.epoch = json.at("epoch").get<std::int64_t>();
  checkpoint.step = json.at("step").get<std::int64_t>();
  const Json& sums = json.at("sums");
  checkpoint.sums = {sums.at("loss").get<double>(), sums.at("correct").get<std::int64_t>(),
                     sums.at("samples").get<std::int64_t>(), sums.at("tokens").get<std::int64_t>(),
                     sums.at("seconds").get<double>()};
  checkpoint.metrics_bytes = json.at("metrics_bytes").get<std::int64_t>();
  checkpoint.events_bytes = json.at("events_bytes").get<std::int64_t>();
  return checkpoint;
}

}  // namespace

void save_train_checkpoint(const std::filesystem::path& path, const TrainCheckpoint& checkpoint) {
  Safetensors content;
  for (const auto& [name, array] : checkpoint.weights)
    content.tensors.emplace(fmt::format("{}{}", weights_prefix, name), array);
  for (const auto& [name, array] : checkpoint.optimizer)
    content.tensors.emplace(fmt::format("{}{}", optimizer_prefix, name), array);
  Json finished = Json::array();
  for (const TrialResult& trial : checkpoint.finished) finished.push_back(trial_json(trial));
  const std::string state = dump({{"config", checkpoint.config},
                                  {"train_fingerprint", checkpoint.train_fingerprint},
                                  {"test_fingerprint", checkpoint.test_fingerprint},
                                  {"finished", finished},
                                  {"current", trial_json(checkpoint.current)},
                                  {"epoch", checkpoint.epoch},
                                  {"step", checkpoint.step},
                                  {"sums", sums_json(checkpoint.sums)},
                                  {"metrics_bytes", checkpoint.metrics_bytes},
                                  {"events_bytes", checkpoint.events_bytes}});
  content.metadata["format"] = checkpoint_format;
  content.metadata["format_version"] = fmt::format("{}", checkpoint_version);
  content.metadata["state"] = state;
  content.metadata["checksum"] = content_checksum(content, state);
  save_safetensors(path, content);
}

TrainCheckpoint load_train_checkpoint(const std::filesystem::path& path) {
  return parse_train_checkpoint(read_file(path), path.string());
}

TrainCheckpoint parse_train_checkpoint(std::span<const std::byte> file, const std::string& name) {
  Safetensors content = parse_safetensors(file, name);
  const auto entry = [&](const char* key) {
    const auto found = content.metadata.find(key);
    return found == content.metadata.end() ? std::string() : found->second;
  };
  if (entry("format") != checkpoint_format)
    throw bad_input(fmt::format("{} is not a checkpoint of attmirror deep train", name));
  if (entry("format_version") != fmt::format("{}", checkpoint_version))
    throw bad_input(fmt::format("{}: format_version is \"{}\": this version of attmirror reads {}", name,
                                entry("format_version"), checkpoint_version));
  if (entry("checksum") != content_checksum(content, entry("state")))
    throw bad_input(fmt::format("{} is damaged: its content does not have its checksum", name));
  TrainCheckpoint checkpoint;
  try {
    checkpoint = from_state(Json::parse(entry("state")));
  } catch (const Json::exception&) {
    throw bad_input(fmt::format("{} is damaged: its state is not what attmirror writes", name));
  }
  for (auto& [tensor, array] : content.tensors) {
    if (tensor.starts_with(weights_prefix))
      checkpoint.weights.emplace(tensor.substr(weights_prefix.size()), std::move(array));
    else if (tensor.starts_with(optimizer_prefix))
      checkpoint.optimizer.emplace(tensor.substr(optimizer_prefix.size()), std::move(array));
  }
  return checkpoint;
}

}  // namespace attmirror::deep
