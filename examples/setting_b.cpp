// Reads run folders and lays ours beside an independent reference: Setting B of "Optimizing Attention with
// Mirror Descent" (arXiv 2410.14581), normalised mirror descent from W = 0 on the data of seed 1.
// scripts/quickstart.sh trains the runs. Compared are entries (1,2) and (3,4) of the last W, counted from 0; then the
// max-margin solution of the selected tokens, and the directional Bregman divergence of the run from it.
//
//   setting_b RUN_FOLDER...
#include <attmirror/attmirror.hpp>

#include <cstdio>
#include <map>

using namespace attmirror;

struct Reference {
  double W12, W34, norm, divergence;
};
const std::map<double, Reference> references = {{1.75, {-6.417, -0.4407, 3.45949206, .00701}},
                                                {2, {-7.558, -1.247, 2.66015688, .00406}},
                                                {3, {-8.517, -3.011, 1.41786894, .00262}}};

int main(int argc, char** argv) try {
  std::printf("%-4s  %5s  %10s  %8s  %8s  %-18s  %8s %9s  %8s %9s  %7s\n", "p", "steps", "loss", "softmax",
              "|W|_p", "selected", "W12", "reference", "W34", "reference", "seconds");
  for (int i = 1; i < argc; ++i) {
    const SavedRun run = load_run(argv[i]);
    if (!run.result) throw bad_input(std::string(argv[i]) + ": the run has not ended");
    const double p = geometry_p(run.config.optimizer);
    const Reference reference = references.at(p);
    const RunResult& end = *run.result;
    const Matrix& W = run.parameters.W;
    std::printf("%-4g  %5lld  %10.8f  %8.6f  %8.4f  %-18s  %8.4f %9.4g  %8.4f %9.4g  %7.4f\n", p,
                static_cast<long long>(end.steps), end.loss, end.max_softmax, end.norm,
                to_string(end.selected).c_str(), W(1, 2), reference.W12, W(3, 4), reference.W34, end.seconds);
  }
  std::printf("\n%-4s  %-10s  %16s %11s  %8s  %8s  %10s %9s  %7s\n", "p", "status", "max-margin norm",
              "reference", "gap", "support", "divergence", "reference", "seconds");
  for (int i = 1; i < argc; ++i) {
    const SavedRun run = load_run(argv[i]);
    const double p = geometry_p(run.config.optimizer);
    const Dataset data = load_run_data(run.config, run.config.data_path);
    const MarginSolution svm = max_margin(data, run.result->selected, Norm::l(p));
    std::printf("%-4g  %-10s  %16.12f %11.8f  %8.1e  %2zu of %2td  %10.5f %9.3g  %7.4f\n", p,
                std::string(to_string(svm.status)).c_str(), svm.norm, references.at(p).norm, svm.gap,
                svm.support.size(), svm.lambda.size(), directional_bregman(svm.W, run.parameters.W, p),
                references.at(p).divergence, svm.seconds);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "setting_b: %s\n", error.what());
  return 1;
}
