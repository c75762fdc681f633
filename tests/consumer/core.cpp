// Training and its certified max-margin solution with attmirror::core alone.
#include <attmirror/core.hpp>

#include <cstdio>

int main() {
  using namespace attmirror;
  const double p = 1.75;
  const Dataset data = generate(SphereData{.samples = 6, .tokens = 8, .dim = 10, .seed = 1});

  // The direction of the trained weights.
  const Attention model{data, W{}, Logistic{}};
  const MirrorDescent optimizer{.p = p, .lr = 0.1, .normalized = true};
  const DescentRun run = descend(model, optimizer, {.steps = 5'000});
  if (run.status != RunStatus::completed) {
    std::printf("%s\n", summary(run).c_str());
    return 1;
  }

  // What it goes to: the max-margin solution for the tokens that attention selects.
  const MarginSolution svm = max_margin(data, run.selected, Norm::l(p));
  if (svm.status != MarginStatus::certified) {
    std::printf("%s\n", svm.reason.c_str());
    return 1;
  }

  const double distance = directional_bregman(svm.W, run.last().W, p);
  std::printf("margin %.6f, gap %.1e, distance %.2e\n", 1 / svm.norm, svm.gap, distance);
  return distance < 0.1 ? 0 : 1;
}
