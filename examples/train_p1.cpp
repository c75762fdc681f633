// Three geometries, one dataset: mirror descent on the first paper's data picks a token of each sequence.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.samples = 6, .tokens = 8, .dim = 10, .seed = 1});
  const Attention model{data};  // W, logistic loss, the dataset's own decoder
  std::printf("%s\noptimal tokens        %s\n", to_string(data).c_str(),
              to_string(optimal_tokens(data)).c_str());

  for (const double p : {1.75, 2.0, 3.0}) {
    const DescentRun run =
        descend(model, MirrorDescent{.p = p, .lr = 0.1, .normalized = true}, {.steps = 2'000});
    std::printf("p = %-4g selects       %s\n  %s\n", p, to_string(run.selected).c_str(),
                summary(run).c_str());
  }
}
