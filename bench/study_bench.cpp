// P1's aggregate study from beginning to end, and the sweep around it:
//
//   study       100 seeds x p = 1.75, 2, 3 with 1,500, 2,000 and 20,000 steps (n = 6, T = 8, d = 10), the 300
//               max-margin
//               problems of the tokens that these runs select, and the 3 x 3 mean divergences of each path from each
//               solution, published style: the solution of q belongs to the run with q
//   sweep       the same trainings and solutions as a sweep into a database, on one and on all threads, in turns
//
//   attmirror_bench_study [--rounds 5] [--seeds 100] [--json]
//
// Times are medians over the rounds. bench/compare_study.py puts PyTorch beside it.
#include <attmirror/attmirror.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace attmirror;
using Clock = std::chrono::steady_clock;

constexpr std::array exponents{1.75, 2.0, 3.0};
constexpr std::array<std::int64_t, 3> lengths{1500, 2000, 20000};

double seconds_of(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Study {
  double train = 0, solve = 0, compare = 0;
  double total() const { return train + solve + compare; }
  std::array<std::array<double, 3>, 3> divergence{};  // [path p][solution q], means over the seeds
};

Study run_study(int seeds, int threads) {
  Study study;
  ThreadPool pool(threads);
  const auto count = static_cast<std::size_t>(seeds);
  std::vector<std::unique_ptr<Dataset>> data(count);
  std::vector<std::unique_ptr<Attention>> models(count);
  std::vector<DescentRun> runs(3 * count);
  const auto place = [&](std::size_t k, std::size_t s) { return k * count + s; };
  study.train = seconds_of([&] {
    for (std::size_t s = 0; s < count; ++s) {
      data[s] = std::make_unique<Dataset>(generate(SphereData{.seed = s + 1}));
      models[s] = std::make_unique<Attention>(*data[s]);
    }
    struct Piece {
      std::size_t k, first;
    };
    std::vector<Piece> pieces;  // vectors of runs, the longest first
    for (const std::size_t k : {2, 1, 0})
      for (std::size_t s = 0; s < count; s += static_cast<std::size_t>(lane_width()))
        pieces.push_back({k, s});
    pool.run(static_cast<std::ptrdiff_t>(pieces.size()), [&](std::ptrdiff_t at) {
      const auto [k, first] = pieces[static_cast<std::size_t>(at)];
      std::vector<DescentTask> tasks;
      for (std::size_t s = first; s < std::min(count, first + static_cast<std::size_t>(lane_width())); ++s) {
        MirrorDescent md{.p = exponents[k],
                         .lr = 0.1,
                         .normalized = true,
                         .eps = EpsPolicy::paper,
                         .jacobian = Jacobian::safe};
        DescentOptions options{.steps = lengths[k], .record = RecordSchedule::none(), .keep = Keep::metrics};
        options.init = {.kind = InitKind::normal, .std = 1, .seed = s + 1};
        tasks.push_back({models[s].get(), md, options});
      }
      std::vector<DescentRun> ended = descend_in_lanes(tasks);
      std::ranges::move(ended, runs.begin() + static_cast<std::ptrdiff_t>(place(k, first)));
    });
  });
  std::vector<MarginSolution> solutions;
  study.solve = seconds_of([&] {
    std::vector<MarginTask> tasks;
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t s = 0; s < count; ++s)
        tasks.push_back({data[s].get(), AttentionSvm{runs[place(k, s)].selected}, Norm::l(exponents[k])});
    solutions = max_margins(tasks, {.threads = threads});
  });
  study.compare = seconds_of([&] {
    for (std::size_t k = 0; k < 3; ++k)
      for (std::size_t q = 0; q < 3; ++q) {
        double sum = 0;
        for (std::size_t s = 0; s < count; ++s)
          sum += directional_bregman(solutions[place(q, s)].W, runs[place(k, s)].last().W, exponents[k]);
        study.divergence[k][q] = sum / static_cast<double>(count);
      }
  });
  const auto uncertified = std::ranges::count_if(
      solutions, [](const MarginSolution& s) { return s.status != MarginStatus::certified; });
  if (uncertified > 0) std::fprintf(stderr, "%td solutions are not certified\n", uncertified);
  return study;
}

std::string sweep_text(int seeds) {
  return "[sweep]\nname = \"P1, Setting A\"\n[data]\ngenerator = \"sphere\"\n[train]\noptimizer = "
         "\"md\"\nnormalized = true\n"
         "eps = \"paper\"\njacobian = \"safe\"\ninit = \"normal:1\"\n[grid]\nseed = \"1:" +
         std::to_string(seeds) +
         "\"\n[[zip]]\np = [1.75, 2.0, 3.0]\nsteps = [1500, 2000, 20000]\n[record]\nsolutions = [\"own\"]\n";
}

SweepOutcome run_database(const SweepPlan& plan, int threads) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("attmirror_study_" + std::to_string(::getpid()) + ".db");
  SweepOutcome outcome;
  {
    SweepDatabase database(path, SweepDatabase::Mode::overwrite, header_of(plan));
    outcome = run_sweep(plan, database, {.threads = threads});
  }
  std::filesystem::remove(path);
  return outcome;
}

int number_after(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return std::max(1, std::atoi(argv[i + 1]));
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = number_after(argc, argv, "--rounds", 5),
            seeds = number_after(argc, argv, "--seeds", 100);
  const bool json =
      std::any_of(argv, argv + argc, [](const char* a) { return std::strcmp(a, "--json") == 0; });
  const int all = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  const SweepPlan plan = parse_sweep(sweep_text(seeds), "study", ".");
  std::vector<double> study_one, study_all, train_all, solve_all, compare_all, sweep_one, sweep_all, share;
  Study study;
  run_study(std::min(seeds, 16), all);  // warms up
  for (int round = 0; round < rounds; ++round) {
    study_one.push_back(run_study(seeds, 1).total());
    study = run_study(seeds, all);
    study_all.push_back(study.total());
    train_all.push_back(study.train);
    solve_all.push_back(study.solve);
    compare_all.push_back(study.compare);
    sweep_one.push_back(run_database(plan, 1).seconds);
    const SweepOutcome outcome = run_database(plan, all);
    sweep_all.push_back(outcome.seconds);
    share.push_back(outcome.database_seconds / outcome.seconds);
  }
  const double steps = static_cast<double>(seeds) * static_cast<double>(lengths[0] + lengths[1] + lengths[2]);
  if (json) {
    std::printf(
        "{\"seeds\": %d, \"steps\": %.0f, \"threads\": %d, \"study_seconds\": %.6f, "
        "\"study_seconds_one_thread\": %.6f, "
        "\"train_seconds\": %.6f, \"solve_seconds\": %.6f, \"compare_seconds\": %.6f, \"sweep_seconds\": "
        "%.6f, "
        "\"sweep_seconds_one_thread\": %.6f, \"database_share\": %.6f, \"isa\": \"%s\"}\n",
        seeds, steps, all, median(study_all), median(study_one), median(train_all), median(solve_all),
        median(compare_all), median(sweep_all), median(sweep_one), median(share),
        std::string(to_string(active_isa())).c_str());
    return 0;
  }
  std::printf("P1's aggregate study: %d seeds x p = 1.75, 2, 3; %.3g steps; %s; medians of %d rounds\n\n",
              seeds, steps, std::string(to_string(active_isa())).c_str(), rounds);
  std::printf("  whole study, %d threads   %.3f s   (train %.3f, solve %.3f, compare %.3f)\n", all,
              median(study_all), median(train_all), median(solve_all), median(compare_all));
  std::printf("  whole study, 1 thread    %.3f s   %.2f times as long\n", median(study_one),
              median(study_one) / median(study_all));
  std::printf("  as a sweep, %d threads    %.3f s   database %.1f %% of it\n", all, median(sweep_all),
              100 * median(share));
  std::printf("  as a sweep, 1 thread     %.3f s   %.2f times as long\n\n", median(sweep_one),
              median(sweep_one) / median(sweep_all));
  std::printf(
      "mean divergence, path p (rows) from solution q (columns 1.75, 2, 3), each with the tokens of its own "
      "run\n");
  for (std::size_t k = 0; k < 3; ++k)
    std::printf("  p = %-4g  %.4f  %.4f  %.4f\n", exponents[k], study.divergence[k][0],
                study.divergence[k][1], study.divergence[k][2]);
  return 0;
}
