#include "descent/block_arrays.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/checkpoint.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::string_view format = "attmirror checkpoint";
constexpr std::int64_t format_version = 1;
constexpr std::string_view state_prefix = "state.";
constexpr std::string_view numbers_prefix = "numbers.";
constexpr std::string_view metric_prefix = "record.metric.";

void put_records(NamedArrays& arrays, const std::vector<Record>& records) {
  std::vector<std::int64_t> step, scheduled, kept;
  std::vector<double> loss, max_softmax, norm;
  std::vector<const Record*> with_weights;
  for (const Record& record : records) {
    step.push_back(record.step);
    loss.push_back(record.loss);
    max_softmax.push_back(record.max_softmax);
    norm.push_back(record.norm);
    scheduled.push_back(record.scheduled ? 1 : 0);
    kept.push_back(has_weights(record.parameters) ? 1 : 0);
    if (has_weights(record.parameters)) with_weights.push_back(&record);
  }
  arrays.emplace("record.step", Array(std::span<const std::int64_t>(step)));
  arrays.emplace("record.loss", Array(std::span<const double>(loss)));
  arrays.emplace("record.max_softmax", Array(std::span<const double>(max_softmax)));
  arrays.emplace("record.norm", Array(std::span<const double>(norm)));
  arrays.emplace("record.scheduled", Array(std::span<const std::int64_t>(scheduled)));
  arrays.emplace("record.kept", Array(std::span<const std::int64_t>(kept)));
  put_metrics(arrays, metric_prefix, records);
  if (!with_weights.empty())
    put_stacked(arrays, "record.", with_weights, with_weights.front()->parameters,
                block_names(with_weights.front()->parameters));
}

std::vector<Record> get_records(const NamedArrays& arrays) {
  const std::size_t count = get_array(arrays, "record.step").size();
  const auto step = get_int64(arrays, "record.step", count);
  const auto loss = get_doubles(arrays, "record.loss", count);
  const auto max_softmax = get_doubles(arrays, "record.max_softmax", count);
  const auto norm = get_doubles(arrays, "record.norm", count);
  const auto scheduled = get_int64(arrays, "record.scheduled", count);
  const auto kept = get_int64(arrays, "record.kept", count);
  const auto with_weights = static_cast<std::size_t>(std::ranges::count(kept, 1));
  std::vector<Parameters> weights =
      get_stacked(arrays, "record.", with_weights, blocks_under(arrays, "record."));
  std::vector<std::vector<Metric>> metrics =
      get_metrics(arrays, metric_prefix, count, [](const std::string&) { return false; });
  std::vector<Record> records(count);
  std::size_t next = 0;
  for (std::size_t r = 0; r < count; ++r) {
    records[r] = {step[r], loss[r], max_softmax[r], norm[r], scheduled[r] == 1, {}, std::move(metrics[r])};
    if (kept[r] == 1) records[r].parameters = std::move(weights[next++]);
  }
  return records;
}

// Arrays "state.NAME.BLOCK" by NAME, which may hold dots of its own.
std::map<std::string, Parameters> get_state(const NamedArrays& arrays) {
  std::map<std::string, Parameters> state;
  for (const auto& [key, array] : arrays) {
    if (!key.starts_with(state_prefix)) continue;
    const std::string rest = key.substr(state_prefix.size());
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string::npos) throw bad_input(fmt::format("array {} names no block", key));
    const std::string name = rest.substr(0, dot);
    if (state.contains(name)) continue;
    const std::string prefix = fmt::format("{}{}.", state_prefix, name);
    state[name] = get_blocks(arrays, prefix, blocks_under(arrays, prefix));
  }
  return state;
}

std::map<std::string, std::vector<double>> get_numbers(const NamedArrays& arrays) {
  std::map<std::string, std::vector<double>> numbers;
  for (const auto& [key, array] : arrays)
    if (key.starts_with(numbers_prefix))
      numbers[key.substr(numbers_prefix.size())] = get_doubles(arrays, key, array.size());
  return numbers;
}

Checkpoint from_arrays(const NamedArrays& arrays) {
  if (!arrays.contains("format") || get_text(arrays, "format") != format)
    throw bad_input("not an attmirror checkpoint");
  if (const std::int64_t version = get_int64(arrays, "format_version", 1)[0]; version != format_version)
    throw bad_input(
        fmt::format("format_version is {}: this version of attmirror reads {}", version, format_version));
  Checkpoint checkpoint;
  checkpoint.model = get_text(arrays, "model");
  checkpoint.rule = get_text(arrays, "rule");
  checkpoint.data_fingerprint = std::bit_cast<std::uint64_t>(get_int64(arrays, "data_fingerprint", 1)[0]);
  checkpoint.step = get_int64(arrays, "step", 1)[0];
  checkpoint.seconds = get_doubles(arrays, "seconds", 1)[0];
  checkpoint.weights = get_blocks(arrays, "weights.", blocks_under(arrays, "weights."));
  checkpoint.state = get_state(arrays);
  checkpoint.numbers = get_numbers(arrays);
  checkpoint.records = get_records(arrays);
  return checkpoint;
}

bool all_finite(const Parameters& parameters) {
  return std::ranges::all_of(block_names(parameters), [&](const Block& block) {
    return std::ranges::all_of(block_values(parameters, block), [](double x) { return std::isfinite(x); });
  });
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  NamedArrays arrays;
  arrays.emplace("format", text_array(format));
  arrays.emplace("format_version", Array::scalar(format_version));
  arrays.emplace("model", text_array(checkpoint.model));
  arrays.emplace("rule", text_array(checkpoint.rule));
  arrays.emplace("data_fingerprint", Array::scalar(std::bit_cast<std::int64_t>(checkpoint.data_fingerprint)));
  arrays.emplace("step", Array::scalar(checkpoint.step));
  arrays.emplace("seconds", Array::scalar(checkpoint.seconds));
  put_blocks(arrays, "weights.", checkpoint.weights);
  for (const auto& [name, blocks] : checkpoint.state)
    put_blocks(arrays, fmt::format("{}{}.", state_prefix, name), blocks);
  for (const auto& [name, numbers] : checkpoint.numbers)
    arrays.emplace(fmt::format("{}{}", numbers_prefix, name), Array(std::span<const double>(numbers)));
  put_records(arrays, checkpoint.records);
  save_npz(path, arrays);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const NamedArrays arrays = load_npz(path);
  try {
    return from_arrays(arrays);
  } catch (const Error& error) {
    throw error.in(fmt::format("cannot use {} as a checkpoint", path.string()));
  }
}

bool is_finite(const Checkpoint& checkpoint) {
  return all_finite(checkpoint.weights) &&
         std::ranges::all_of(checkpoint.state, [](const auto& named) { return all_finite(named.second); }) &&
         std::ranges::all_of(checkpoint.numbers, [](const auto& named) {
           return std::ranges::all_of(named.second, [](double x) { return std::isfinite(x); });
         });
}

}  // namespace attmirror
