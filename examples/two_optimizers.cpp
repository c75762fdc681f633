// Two optimizers, one model: both select the same tokens, but by weights that point elsewhere. Gradient descent
// makes the margin largest for its Frobenius norm, sign descent for its largest entry.
#include <attmirror/attmirror.hpp>

#include <cstdio>
#include <limits>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model{data};
  const Norm frobenius = Norm::frobenius(), largest = Norm::l(std::numeric_limits<double>::infinity());

  std::printf("%-17s %-20s %18s %18s\n", "", "selected", "margin/Frobenius", "margin/largest");
  const auto show = [&](const char* name, const Optimizer& optimizer) {
    const DescentRun run = descend(model, optimizer, {.steps = 10'000});
    const double margin = selection_margin(data, run.selected, run.last().W);
    std::printf("%-17s %-20s %18.3f %18.3f\n", name, to_string(run.selected).c_str(),
                margin / attention_norm(run.last(), frobenius), margin / attention_norm(run.last(), largest));
  };
  show("gradient descent", GradientDescent{.lr = 0.1, .normalized = true});
  show("sign descent", sign_descent(0.1));
}
