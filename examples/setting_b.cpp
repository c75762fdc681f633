// Reads run folders and lays ours beside an independent reference: Setting B of "Optimizing Attention with
// Mirror Descent" (arXiv 2410.14581), normalised mirror descent from W = 0 on the data of seed 1.
// scripts/quickstart.sh trains the runs. Compared are entries (1,2) and (3,4) of the last W, counted from 0.
//
//   setting_b RUN_FOLDER...
#include <attmirror/attmirror.hpp>

#include <cstdio>
#include <map>

using namespace attmirror;

struct Reference {
  double W12, W34;
};
const std::map<double, Reference> references = {
    {1.75, {-6.417, -0.4407}}, {2, {-7.558, -1.247}}, {3, {-8.517, -3.011}}};

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
} catch (const std::exception& error) {
  std::fprintf(stderr, "setting_b: %s\n", error.what());
  return 1;
}
