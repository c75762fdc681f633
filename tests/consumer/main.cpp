#include <attmirror/attmirror.hpp>

#include <iostream>

int main() {
  using namespace attmirror;
  const Dataset data = generate(SphereData{.samples = 6, .tokens = 8, .dim = 10, .seed = 1});
  const Attention model{data};
  const DescentRun run =
      descend(model, MirrorDescent{.p = 3, .lr = 0.1, .normalized = true}, {.steps = 1000});
  std::cout << version_line() << '\n' << to_string(run.selected) << '\n';
  return run.selected == optimal_tokens(data) ? 0 : 1;
}
