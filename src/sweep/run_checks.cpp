#include "sweep/run_checks.hpp"

#include "sweep/record_plan.hpp"
#include <attmirror/base/fingerprint.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

void add_value(Fingerprint& print, const FieldValue& value) {
  if (const auto* word = std::get_if<std::string>(&value))
    print.add(std::string_view(*word));
  else if (const auto* number = std::get_if<double>(&value))
    print.add(*number);
  else
    print.add(std::string_view(to_text(value)));
}

void check_fit(const DataOutline& outline, const ModelPlan& plan) {
  constexpr std::int64_t largest = 4096;  // more than that is not worth the memory just to ask
  if (outline.dim > largest) return;
  DatasetArrays arrays;
  arrays.tokens = Matrix::Zero(2, outline.dim);
  arrays.tokens(0, 0) = 1;
  arrays.lengths = {2};
  arrays.labels = {1};
  if (outline.queries_are_tokens)
    arrays.query_index = {1};
  else
    arrays.queries = arrays.tokens.topRows(1);
  if (outline.has_decoder) arrays.decoder = arrays.tokens.row(0).transpose();
  if (outline.has_head_weights) arrays.head = arrays.tokens.row(0).transpose();
  Dataset data(arrays);
  if (plan.mask == Mask::causal) data = with_causal_mask(std::move(data));
  const Attention model = make_attention(data, plan);
  if (std::holds_alternative<KQ>(plan.parameterization) && plan.init_path.empty())
    initial_parameters(model, plan.init);  // K = Q = 0 does not move
}

// "run 3 (optimizer = sign, p = 1.5)": the settings that vary.
std::string run_text(const SweepAxes& axes, std::int64_t run) {
  std::string text = fmt::format("run {}", run);
  if (axes.varied.empty()) return text;
  const Values values = values_of(axes, run);
  std::string list;
  for (const std::size_t setting : axes.varied) {
    if (std::holds_alternative<std::monostate>(values[setting])) continue;
    list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", settings()[setting].info.name,
                        to_text(settings()[setting], values[setting]));
  }
  return list.empty() ? text : fmt::format("{} ({})", text, list);
}

}  // namespace

void RunChecks::check(const RunWords& words) {
  if (words.file) check_exists("file", *words.file);
  if (const auto path = words.training.get<std::string>("key_weights")) check_exists("key_weights", *path);
  if (const std::string init = words.training.word("init"); init.starts_with("file:"))
    check_exists("init", init.substr(5));
  if (words.file) return;  // what a file holds is known when it is read
  check_model(words);
}

void RunChecks::check_exists(const char* setting, const std::string& path) {
  if (found_.contains(path)) return;
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder_ / path, error))
    throw bad_input(
        fmt::format("{} is {}: there is no such file", setting, in_double_quotes((folder_ / path).string())));
  found_.insert(path);
}

void RunChecks::check_model(const RunWords& words) {
  const DataOutline data = find_generator(*words.generator).outline(words.data);
  Fingerprint question;
  question.add(std::ptrdiff_t{data.dim});
  question.add(std::ptrdiff_t{data.has_decoder + 2 * data.has_head_weights + 4 * data.queries_are_tokens});
  for (const char* name : {"params", "rank", "head", "mask", "penalty", "train", "init"})
    if (const FieldValue* value = words.training.find(name)) add_value(question, *value);
  if (!answered_.insert(question.value()).second) return;
  check_fit(data, plan_model(words.training));
}

Values RunChecks::resolved(const Values& given) {
  Values result = resolve(given);
  const RunWords words = to_words(result);
  check(words);
  for (const SolutionPlan& solution : record_.solutions)
    if (!solution.norm) norm_of(solution, make_optimizer(words.training));  // throws where theory names none
  return result;
}

std::uint64_t run_key(const Values& resolved, std::string_view record_text) {
  Fingerprint print;
  print.add(fingerprint(resolved));
  print.add(record_text);
  return print.value();
}

Error same_settings(const SweepAxes& axes, std::int64_t twin) {
  return bad_input(fmt::format("it has the same settings as {}", run_text(axes, twin)));
}

Error of_run(const Error& error, const SweepAxes& axes, std::int64_t run, const std::string& name) {
  return Error(error.kind(),
               fmt::format("{}: {}: {}", name, run_text(axes, run), error.message(setting_spelling)));
}

}  // namespace attmirror
