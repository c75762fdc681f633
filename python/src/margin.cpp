// Max-margin problems: one, many, and the check of any answer.
#include "base/numbers.hpp"
#include "base/stopwatch.hpp"
#include "bridge.hpp"
#include "margin/solution_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/margin/certificate.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/margin/svm_file.hpp>

#include <fmt/format.h>

namespace attmirror::python {

namespace {

Matrix optional_matrix(const nb::object& values, std::string_view name) {
  return values.is_none() ? Matrix() : matrix_of(nb::cast<Doubles>(values), name);
}

MarginOptions::Generation parse_generation(const std::string& word) {
  if (word == "auto") return MarginOptions::Generation::automatic;
  if (word == "on") return MarginOptions::Generation::on;
  if (word == "off") return MarginOptions::Generation::off;
  throw bad_value("generation", word, "auto, on or off");
}

// None, or what differs from the defaults.
MarginOptions read_margin_options(const nb::object& given) {
  MarginOptions options;
  if (given.is_none()) return options;
  for (const auto& [key, value] : nb::cast<nb::dict>(given)) {
    if (value.is_none()) continue;
    const auto name = nb::cast<std::string>(key);
    try {
      if (name == "tol")
        options.tol = nb::cast<double>(value);
      else if (name == "max_norm")
        options.max_norm = nb::cast<double>(value);
      else if (name == "max_iterations")
        options.max_iterations = nb::cast<int>(value);
      else if (name == "max_seconds")
        options.max_seconds = nb::cast<double>(value);
      else if (name == "method")
        options.method = parse_margin_method(nb::cast<std::string>(value));
      else if (name == "generation")
        options.generation = parse_generation(nb::cast<std::string>(value));
      else if (name == "threads")
        options.threads = nb::cast<int>(value);
      else if (name == "max_rank")
        options.max_rank = nb::cast<std::ptrdiff_t>(value);
      else
        raise_type_error(fmt::format("max_margin() has no argument {}", name));
    } catch (const nb::cast_error&) {
      raise_type_error(
          fmt::format("{} is {}: expected another type", name, nb::cast<std::string>(nb::repr(value))));
    }
  }
  return options;
}

KeptTokens read_kept(const nb::object& kept) {
  KeptTokens result;
  for (const nb::handle row : nb::cast<nb::list>(kept)) {
    const auto tokens = nb::cast<Integers>(row);
    result.tokens.emplace_back(tokens.data(), tokens.data() + tokens.size());
  }
  return result;
}

// The relaxed problem, of a prompt (P2) or of W, has bounds by the support vectors of the decoder's.
MarginProblem relaxed_problem_of(const Dataset& data, Selection tokens, bool of_prompt, Matrix key_weights,
                                 const Norm& decoder_norm, const StopRequest& stop) {
  MarginOptions options;
  options.stop = stop;
  const MarginSolution decoder = max_margin(data, MarginProblem{DecoderSvm{tokens}}, decoder_norm, options);
  if (decoder.status != MarginStatus::certified)
    throw bad_input(
        fmt::format("the decoder's problem, whose support vectors the relaxed one needs, is {}: {}",
                    to_string(decoder.status), decoder.brief()));
  std::vector<double> bounds = relaxed_bounds(data, decoder.support);
  if (!of_prompt) return AttentionSvm{std::move(tokens), std::move(bounds)};
  return PromptSvm{std::move(tokens), std::move(key_weights), std::move(bounds)};
}

// The arguments of a problem, taken from Python before the interpreter's lock is released.
struct ProblemWords {
  std::string problem;
  std::optional<Selection> tokens;
  Matrix key_weights;
  KeptTokens kept;
  std::vector<Vector> logits;
  std::vector<double> bounds{};
  Norm decoder_norm = Norm::frobenius();

  MarginProblem make(const Dataset& data, const StopRequest& stop) const {
    const auto selection = [&] { return tokens ? *tokens : optimal_tokens(data); };
    if (problem == "attention") return AttentionSvm{selection(), bounds};
    if (problem == "prompt") return PromptSvm{selection(), key_weights, bounds};
    if (problem == "decoder") return DecoderSvm{selection()};
    if (problem == "relaxed" || problem == "relaxed-attention")
      return relaxed_problem_of(data, selection(), problem == "relaxed", key_weights, decoder_norm, stop);
    if (problem == "general-direction") return GeneralDirectionSvm{kept};
    if (problem == "general-finite") return GeneralFiniteSvm{kept, logits};
    throw bad_value(
        "problem", problem,
        "attention, prompt, decoder, relaxed, relaxed-attention, general-direction or general-finite");
  }
};

ProblemWords read_problem(const std::string& problem, const nb::object& tokens, const nb::object& key_weights,
                          const nb::object& kept, const nb::object& logits, const nb::object& bounds) {
  ProblemWords words{problem, std::nullopt, optional_matrix(key_weights, "key_weights"), {}, {}};
  if (!tokens.is_none()) words.tokens = to_selection(nb::cast<Integers>(tokens));
  if (!kept.is_none()) words.kept = read_kept(kept);
  if (!logits.is_none())
    for (const nb::handle row : nb::cast<nb::list>(logits))
      words.logits.push_back(vector_of(nb::cast<Doubles>(row), "logits"));
  if (!bounds.is_none()) {
    if (problem != "attention" && problem != "prompt")
      throw bad_input(
          fmt::format("bounds is given, but problem is {}: expected attention or prompt", problem));
    const Vector values = vector_of(nb::cast<Doubles>(bounds), "bounds");
    words.bounds.assign(values.begin(), values.end());
  }
  return words;
}

SolutionHandle solve_one(const DataHandle& data, const std::string& problem, const nb::object& tokens,
                         const nb::object& norm, const nb::object& options, const nb::object& key_weights,
                         const nb::object& kept, const nb::object& logits, const SolutionHandle* start,
                         const nb::object& bounds, const nb::object& decoder_norm) {
  ProblemWords words = read_problem(problem, tokens, key_weights, kept, logits, bounds);
  words.decoder_norm = to_norm(decoder_norm);
  const Norm kind = to_norm(norm);
  MarginOptions solving = read_margin_options(options);
  return unlocked([&](const StopRequest& stop) {
    solving.stop = stop;
    MarginProblem made = words.make(*data.data, stop);
    WarmStart warm;
    if (start != nullptr) {
      const MarginConstraints there = constraints(*start->data, start->problem);
      const auto origins = there.origins();
      warm = {start->solution.W,
              matched_multipliers(start->solution.lambda, {origins.begin(), origins.end()},
                                  constraints(*data.data, made), Unmatched::drop, "lambda")};
    }
    MarginSolution solution = max_margin(*data.data, made, kind, solving, warm);
    return SolutionHandle{data.data, std::move(made), std::move(solution)};
  });
}

// Tasks are tuples (data, tokens or None, norm); problems are attention SVMs.
std::vector<SolutionHandle> solve_many(const nb::list& tasks, const std::string& problem,
                                       const nb::object& options) {
  MarginOptions solving = read_margin_options(options);
  std::vector<SolutionHandle> handles;
  std::vector<MarginTask> list;
  handles.reserve(nb::len(tasks));
  list.reserve(nb::len(tasks));
  nb::handle last_norm;
  Norm norm = Norm::frobenius();
  for (const nb::handle task : tasks) {
    const auto& data = nb::cast<const DataHandle&>(task[0]);
    const nb::object third = nb::borrow(task[2]);
    if (third.ptr() != last_norm.ptr()) norm = to_norm(third);
    last_norm = third;
    const ProblemWords words{
        problem,
        task[1].is_none() ? std::nullopt : std::optional(to_selection(nb::cast<Integers>(task[1]))),
        {},
        {},
        {}};
    if (problem.starts_with("relaxed")) throw bad_value("problem", problem, "attention, prompt or decoder");
    handles.push_back({data.data, words.make(*data.data, {}), {}});
    list.push_back({data.data.get(), handles.back().problem, norm});
  }
  std::vector<MarginSolution> solutions = unlocked([&](const StopRequest& stop) {
    solving.stop = stop;
    return max_margins(list, solving);
  });
  for (std::size_t i = 0; i < handles.size(); ++i) handles[i].solution = std::move(solutions[i]);
  return handles;
}

// ---- an answer and its parts

Shape weights_shape(const SolutionHandle& self) {
  const Matrix& W = self.solution.W;
  // A prompt and a decoder are vectors.
  const std::string_view name = weights_name(self.problem);
  return name == "W" ? Shape{W.rows(), W.cols()} : Shape{W.size()};
}

nb::object weights_of(const SolutionHandle& self) {
  const Matrix& W = self.solution.W;
  return to_numpy(std::vector<double>(W.data(), W.data() + W.size()), weights_shape(self));
}

nb::object origins_of(const SolutionHandle& self, const std::vector<std::ptrdiff_t>* chosen) {
  const MarginConstraints all = constraints(*self.data, self.problem);
  std::vector<std::int64_t> values;
  const auto add = [&](std::size_t k) {
    const ConstraintOrigin& origin = all.origins()[k];
    values.insert(values.end(), {origin.sequence, origin.query, origin.token});
  };
  if (chosen != nullptr)
    for (const std::ptrdiff_t k : *chosen) add(at(k));
  else
    for (std::size_t k = 0; k < all.origins().size(); ++k) add(k);
  const auto rows = static_cast<std::int64_t>(values.size() / 3);
  return to_numpy(std::move(values), {rows, 3});
}

const Selection* tokens_of_problem(const MarginProblem& problem) {
  if (const auto* svm = std::get_if<AttentionSvm>(&problem)) return &svm->tokens;
  if (const auto* svm = std::get_if<PromptSvm>(&problem)) return &svm->tokens;
  if (const auto* svm = std::get_if<DecoderSvm>(&problem)) return &svm->tokens;
  return nullptr;
}

nb::dict certificate_to_python(const Certificate& certificate, double tolerance) {
  nb::dict result;
  result["norm"] = certificate.norm;
  result["dual"] = certificate.dual;
  result["gap"] = certificate.gap;
  result["worst_margin"] = certificate.worst_margin;
  result["worst_violation"] = certificate.worst_violation;
  result["feasible"] = certificate.feasible();
  result["certified"] = certificate.certifies(tolerance);
  result["tol"] = tolerance;
  return result;
}

Certificate certify_again(const SolutionHandle& self, const Norm& norm, const Matrix& W,
                          const Vector& lambda) {
  const nb::gil_scoped_release release;
  return certify(*self.data, self.problem, norm, W, lambda);
}

nb::dict verify_solution(const SolutionHandle& self) {
  const Matrix W = self.solution.W.allFinite() ? self.solution.W : Matrix();
  return certificate_to_python(certify_again(self, self.solution.kind, W, self.solution.lambda),
                               MarginOptions{}.tolerance(self.solution.kind));
}

nb::dict verify_arrays(const DataHandle& data, const std::string& problem, const nb::object& tokens,
                       const nb::object& norm, const Doubles& W, const Doubles& lambda,
                       const nb::object& key_weights, const std::optional<double>& tol) {
  const ProblemWords words = read_problem(problem, tokens, key_weights, nb::none(), nb::none(), nb::none());
  const Norm kind = to_norm(norm);
  const SolutionHandle handle{data.data, words.make(*data.data, {}), {}};
  const Matrix weights = W.ndim() == 1 ? Matrix(vector_of(W, "W")) : matrix_of(W, "W");
  return certificate_to_python(certify_again(handle, kind, weights, vector_of(lambda, "lambda_")),
                               tol ? *tol : MarginOptions{}.tolerance(kind));
}

// Whether training that starts near this solution stays there: P1's locally optimal tokens.
nb::object locally_optimal(const SolutionHandle& self) {
  const Selection* tokens = tokens_of_problem(self.problem);
  if (tokens == nullptr || !self.data->has_decoder() || std::holds_alternative<DecoderSvm>(self.problem) ||
      !self.solution.W.allFinite())
    return nb::none();
  const ConstMatrixView v = self.data->decoder();
  const Vector decoder = Eigen::Map<const Vector>(v.data, v.cols);
  return nb::cast(local_optimality(*self.data, *tokens, constraints(*self.data, self.problem),
                                   self.solution.support, linear_scores(*self.data, decoder))
                      .holds);
}

// From the nearest of all solutions, one for each set of weights (k, rows, cols); NaN where it is not known.
nb::object distances_from_solutions(const SolutionHandle& self, const nb::list& weights) {
  std::vector<double> distances;
  const SolutionSet set(constraints(*self.data, self.problem), self.solution.kind, self.solution.W);
  for (const nb::handle one : weights) {
    const auto nearest = set.nearest(matrix_of(nb::cast<Doubles>(one), "weights"));
    distances.push_back(nearest ? nearest->distance : nan_value);
  }
  return to_numpy(std::move(distances));
}

nb::tuple solution_state(const SolutionHandle& self) {
  const Selection* tokens = tokens_of_problem(self.problem);
  if (tokens == nullptr) throw bad_input("solutions of general problems cannot be pickled: save() them");
  const auto* prompt = std::get_if<PromptSvm>(&self.problem);
  const auto* attention = std::get_if<AttentionSvm>(&self.problem);
  const MarginSolution& s = self.solution;
  const std::vector<std::int64_t> support(s.support.begin(), s.support.end()),
      conflict(s.conflict.begin(), s.conflict.end());
  return nb::make_tuple(
      nb::cast(DataHandle{self.data, {}}),
      std::string(prompt != nullptr      ? "prompt"
                  : attention != nullptr ? "attention"
                                         : "decoder"),
      to_numpy(tokens->tokens),
      prompt != nullptr && prompt->key_weights.size() > 0 ? to_numpy(prompt->key_weights) : nb::none(),
      to_numpy(prompt != nullptr      ? prompt->bounds
               : attention != nullptr ? attention->bounds
                                      : std::vector<double>()),
      to_python(s.kind), static_cast<int>(s.status), to_numpy(s.W), to_numpy(s.lambda), to_numpy(support),
      to_numpy(conflict), nb::make_tuple(s.norm, s.dual, s.gap, s.seconds, s.iterations, s.method, s.reason),
      to_numpy(s.singular_values), s.dual_multiplicity);
}

SolutionHandle solution_of_state(const nb::tuple& state) {
  SolutionHandle handle;
  handle.data = nb::cast<const DataHandle&>(state[0]).data;
  const auto word = nb::cast<std::string>(state[1]);
  const Selection tokens = to_selection(nb::cast<Integers>(state[2]));
  const auto bounds_array = nb::cast<Doubles>(state[4]);
  const std::vector<double> bounds(bounds_array.data(), bounds_array.data() + bounds_array.size());
  if (word == "prompt")
    handle.problem = PromptSvm{tokens, optional_matrix(nb::borrow(state[3]), "key_weights"), bounds};
  else if (word == "attention")
    handle.problem = AttentionSvm{tokens, bounds};
  else
    handle.problem = DecoderSvm{tokens};
  MarginSolution& s = handle.solution;
  s.kind = to_norm(state[5]);
  s.status = static_cast<MarginStatus>(nb::cast<int>(state[6]));
  s.W = matrix_of(nb::cast<Doubles>(state[7]), "W");
  s.lambda = vector_of(nb::cast<Doubles>(state[8]), "lambda");
  const auto support = nb::cast<Integers>(state[9]), conflict = nb::cast<Integers>(state[10]);
  s.support.assign(support.data(), support.data() + support.size());
  s.conflict.assign(conflict.data(), conflict.data() + conflict.size());
  s.norm = nb::cast<double>(state[11][0]);
  s.dual = nb::cast<double>(state[11][1]);
  s.gap = nb::cast<double>(state[11][2]);
  s.seconds = nb::cast<double>(state[11][3]);
  s.iterations = nb::cast<int>(state[11][4]);
  s.method = nb::cast<std::string>(state[11][5]);
  s.reason = nb::cast<std::string>(state[11][6]);
  s.singular_values = vector_of(nb::cast<Doubles>(state[12]), "singular_values");
  s.dual_multiplicity = nb::cast<std::ptrdiff_t>(state[13]);
  s.certificate = certify(*handle.data, handle.problem, s.kind, s.W.allFinite() ? s.W : Matrix(), s.lambda);
  return handle;
}

nb::tuple load_saved_solution(const std::string& path, const DataHandle& data) {
  const SavedSolution saved = load_solution(path, *data.data);
  return nb::make_tuple(saved.problem, saved.kind ? to_python(*saved.kind) : nb::none(),
                        saved.W.size() > 0   ? to_numpy(saved.W)
                        : saved.p.size() > 0 ? to_numpy(saved.p)
                        : saved.v.size() > 0 ? to_numpy(saved.v)
                                             : nb::none(),
                        to_numpy(saved.lambda), saved.alpha ? to_numpy(*saved.alpha, *data.data) : nb::none(),
                        saved.key_weights.size() > 0 ? to_numpy(saved.key_weights) : nb::none());
}

// What max_margin() and max_margins() take in C++, for bench/python_overhead.py: seconds of each of `repeat` calls.
std::vector<double> time_max_margin(const DataHandle& data, const Integers& tokens, const nb::object& norm,
                                    int repeat) {
  const Selection selection = to_selection(tokens);
  const Norm kind = to_norm(norm);
  const nb::gil_scoped_release release;
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const Clock::time_point begin = Clock::now();
    const MarginSolution solution = max_margin(*data.data, selection, kind);
    seconds.push_back(seconds_since(begin));
  }
  return seconds;
}

double time_max_margins(const std::vector<DataHandle>& data, const nb::object& norm, int threads) {
  const Norm kind = to_norm(norm);
  const nb::gil_scoped_release release;
  const Clock::time_point begin = Clock::now();
  std::vector<MarginTask> tasks;
  for (const DataHandle& one : data)
    tasks.push_back({one.data.get(), AttentionSvm{optimal_tokens(*one.data)}, kind});
  MarginOptions options;
  options.threads = threads;
  const std::vector<MarginSolution> solutions = max_margins(tasks, options);
  return seconds_since(begin);
}

}  // namespace

void bind_margin(nb::module_& module) {
  using Handle = SolutionHandle;
  nb::class_<Handle>(module, "MarginSolution")
      .def("__getstate__", &solution_state)
      .def("__setstate__",
           [](Handle& self, const nb::tuple& state) { new (&self) Handle(solution_of_state(state)); })
      .def_prop_ro("status", [](const Handle& self) { return std::string(to_string(self.solution.status)); })
      .def_prop_ro("problem", [](const Handle& self) { return std::string(problem_name(self.problem)); })
      .def_prop_ro("kind", [](const Handle& self) { return to_python(self.solution.kind); })
      .def_prop_ro("norm", [](const Handle& self) { return self.solution.norm; })
      .def_prop_ro("dual", [](const Handle& self) { return self.solution.dual; })
      .def_prop_ro("gap", [](const Handle& self) { return self.solution.gap; })
      .def_prop_ro("seconds", [](const Handle& self) { return self.solution.seconds; })
      .def_prop_ro("iterations", [](const Handle& self) { return self.solution.iterations; })
      .def_prop_ro("method", [](const Handle& self) { return self.solution.method; })
      .def_prop_ro("reason", [](const Handle& self) { return self.solution.reason; })
      .def_prop_ro("data",
                   [](const Handle& self) {
                     return DataHandle{self.data, {}};
                   })
      .def("W", &weights_of)
      .def("matrix", [](const Handle& self) { return to_numpy(self.solution.W); })
      .def("multipliers", [](const Handle& self) { return to_numpy(self.solution.lambda); })
      .def("singular_values", [](const Handle& self) { return to_numpy(self.solution.singular_values); })
      .def("tokens",
           [](const Handle& self) -> nb::object {
             const Selection* tokens = tokens_of_problem(self.problem);
             return tokens == nullptr ? nb::none() : to_numpy(*tokens, *self.data);
           })
      .def("constraints", [](const Handle& self) { return origins_of(self, nullptr); })
      .def("support", [](const Handle& self) { return origins_of(self, &self.solution.support); })
      .def("conflict", [](const Handle& self) { return origins_of(self, &self.solution.conflict); })
      .def("verify", &verify_solution)
      .def("locally_optimal", &locally_optimal)
      .def_prop_ro("unique",
                   [](const Handle& self) { return solutions_of(self.solution.kind) != Solutions::several; })
      .def("distances", &distances_from_solutions)
      .def("brief", [](const Handle& self) { return self.solution.brief(); })
      .def("report", [](const Handle& self) { return self.solution.report(); })
      .def("save", [](const Handle& self, const std::string& path) {
        const nb::gil_scoped_release release;
        save_solution(path, *self.data, self.problem, self.solution);
      });
  module.def("max_margin", &solve_one, nb::arg("data"), nb::arg("problem"), nb::arg("tokens").none(),
             nb::arg("norm"), nb::arg("options").none(), nb::arg("key_weights").none(),
             nb::arg("kept").none(), nb::arg("logits").none(), nb::arg("start").none(),
             nb::arg("bounds").none(), nb::arg("decoder_norm"));
  module.def("max_margin_many", &solve_many, nb::arg("tasks"), nb::arg("problem"), nb::arg("options").none());
  module.def("verify", &verify_arrays, nb::arg("data"), nb::arg("problem"), nb::arg("tokens").none(),
             nb::arg("norm"), nb::arg("W"), nb::arg("lambda_"), nb::arg("key_weights").none(),
             nb::arg("tol").none());
  module.def("load_solution", &load_saved_solution);
  module.def("time_max_margin", &time_max_margin);
  module.def("time_max_margins", &time_max_margins);
}

}  // namespace attmirror::python
