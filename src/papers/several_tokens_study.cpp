// Few data sets pass the rules (one in 56 for d = 10), so training is done in two rounds: all of them without
// records, and those that passed once more with the records that the comparison needs. A run has the same bits
// both times.
#include "papers/several_tokens_study.hpp"

#include "papers/training_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/general_svm.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>
#include <deque>
#include <iterator>

namespace attmirror::several_tokens {

namespace {

constexpr GradientDescent several_tokens_rule{
    .lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .jacobian = Jacobian::safe};
constexpr double masked_threshold = 1e-6;  // kept_threshold is 1e-3

Initialization start_of(std::uint64_t seed) { return {.kind = InitKind::uniform, .seed = seed}; }

std::vector<std::int64_t> record_steps() {
  std::vector<std::int64_t> list;
  for (std::int64_t it = 0; it <= steps; it += 100)
    list.push_back(it + 1);  // weights are stored after the step
  return list;
}

struct Candidate {
  Dataset data;
  std::uint64_t seed;
  std::vector<Vector> probabilities;
  Selection selected;
};

// Trains the next data sets and keeps those whose probabilities pass, in the order of seeds.
std::deque<Candidate> candidates(const ExperimentContext& context, std::int64_t d, std::uint64_t first,
                                 std::uint64_t count) {
  TrainingSet set;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Dataset data = generate(ReluHeadData{.samples = 3, .tokens = 4, .dim = d, .seed = seed});
    if (std::ranges::find(data.labels(), -1.0) == data.labels().end()) continue;
    set.add(set.keep(std::move(data)), W{}, {.head = ReluHead{}}, several_tokens_rule,
            {.steps = steps, .record = RecordSchedule::none(), .init = start_of(seed)});
    seeds.push_back(seed);
  }
  const std::vector<DescentRun> runs = train_all(context, set.tasks());
  std::deque<Candidate> passed;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<Vector> s = attention_probabilities(set.model(i), runs[i].last());
    bool between = false, masked = false;
    for (const Vector& one : s) {
      between = between || ((one.array() > masked_threshold) && (one.array() <= kept_threshold)).any();
      masked = masked || (one.array() <= masked_threshold).any();
    }
    if (!between && masked) passed.push_back({set.data(i), seeds[i], std::move(s), runs[i].selected});
  }
  return passed;
}

// W_fin and W_dir of a training with these probabilities.
std::array<MarginTask, 2> general_problems(const Dataset& data, const std::vector<Vector>& probabilities) {
  const KeptTokens kept = kept_tokens(probabilities);
  std::vector<Vector> logits;  // those of masked tokens do not matter, but must not be infinite
  for (const Vector& s : probabilities) logits.push_back(s.array().max(1e-300).log());
  return {MarginTask{&data, GeneralFiniteSvm{kept, logits}, Norm::frobenius()},
          MarginTask{&data, GeneralDirectionSvm{kept}, Norm::frobenius()}};
}

// The three problems of each candidate; then the path of those that have solutions.
void compare(const ExperimentContext& context, const std::deque<Candidate>& passed, Study& study) {
  std::vector<MarginTask> problems;
  TrainingSet set;
  for (const Candidate& one : passed) {
    std::ranges::copy(general_problems(one.data, one.probabilities), std::back_inserter(problems));
    problems.push_back({&one.data, AttentionSvm{one.selected}, Norm::frobenius()});
    set.add(one.data, W{}, {.head = ReluHead{}}, several_tokens_rule,
            {.steps = steps + 1, .record = RecordSchedule::at(record_steps()), .init = start_of(one.seed)});
  }
  const std::vector<MarginSolution> solutions = solve_all(context.part(0, 0.3), problems);
  const std::vector<DescentRun> runs = train_all(context.part(0.3, 1), set.tasks());
  for (std::size_t i = 0; i < passed.size(); ++i) {
    bool solved = true;
    for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) {
      study.infeasible += solutions[k].status == MarginStatus::infeasible;
      study.stopped += solutions[k].status == MarginStatus::stopped;
      solved = solved && solutions[k].status == MarginStatus::certified;
    }
    if (!solved) continue;
    Accepted one{.seed = passed[i].seed};
    for (const Vector& s : passed[i].probabilities) {
      for (const double probability : s)
        if (probability <= masked_threshold) one.largest_masked = std::max(one.largest_masked, probability);
      one.kept_per_sequence += static_cast<double>((s.array() > masked_threshold).count()) / 3;
    }
    const SvmEquivalent best = svm_equivalent(solutions[3 * i].W, solutions[3 * i + 1].W, runs[i].last().W);
    one.R = best.R;
    for (const Record& record : runs[i].records) {
      one.distances[equivalent].push_back(1 - correlation(best.W, record.parameters.W));
      one.distances[direction].push_back(1 - correlation(solutions[3 * i + 1].W, record.parameters.W));
      one.distances[single_token].push_back(1 - correlation(solutions[3 * i + 2].W, record.parameters.W));
    }
    study.accepted.push_back(std::move(one));
  }
}

}  // namespace

std::vector<double> without_eps(const ExperimentContext& context, const Study& study, std::size_t count) {
  TrainingSet set;
  for (std::size_t i = 0; i < std::min(count, study.accepted.size()); ++i) {
    const std::uint64_t seed = study.accepted[i].seed;
    set.add(set.keep(generate(ReluHeadData{.samples = 3, .tokens = 4, .dim = study.d, .seed = seed})), W{},
            {.head = ReluHead{}}, GradientDescent{.lr = 0.1, .normalized = true},
            {.steps = 10 * steps, .record = RecordSchedule::none(), .init = start_of(seed)});
  }
  const std::vector<DescentRun> runs = train_all(context.part(0, 0.9), set.tasks());
  std::vector<MarginTask> problems;
  for (std::size_t i = 0; i < runs.size(); ++i)
    std::ranges::copy(general_problems(set.data(i), attention_probabilities(set.model(i), runs[i].last())),
                      std::back_inserter(problems));
  const std::vector<MarginSolution> solutions = solve_all(context.part(0.9, 1), problems);
  std::vector<double> distances;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const MarginSolution &finite = solutions[2 * i], &dir = solutions[2 * i + 1];
    distances.push_back(
        finite.status == MarginStatus::certified && dir.status == MarginStatus::certified
            ? 1 - correlation(svm_equivalent(finite.W, dir.W, runs[i].last().W).W, runs[i].last().W)
            : std::nan(""));
  }
  return distances;
}

Study measure(const ExperimentContext& context, std::int64_t d, std::size_t wanted, double expected) {
  Study study{.d = d};
  std::deque<Candidate> passed;
  // In batches, of a size that does not depend on the number of threads; what comes after the last one is left out.
  const std::uint64_t batch = context.quick() ? 128 : 1024;
  while (passed.size() < wanted) {
    const auto at = [&](std::uint64_t tried) {
      return std::min(0.95, 0.95 * static_cast<double>(tried) / expected);
    };
    for (Candidate& one :
         candidates(context.part(at(study.tried), at(study.tried + batch)), d, study.tried, batch))
      passed.push_back(std::move(one));
    study.tried += batch;
  }
  while (passed.size() > wanted) passed.pop_back();
  study.tried = passed.back().seed + 1;
  compare(context.part(0.95, 1), passed, study);
  return study;
}

std::vector<double> distances_at(const Study& study, Target target, std::int64_t it) {
  std::vector<double> values;
  for (const Accepted& one : study.accepted)
    values.push_back(one.distances[target][static_cast<std::size_t>(it / 100)]);
  return values;
}

}  // namespace attmirror::several_tokens
