#include <attmirror/deep.hpp>

#include <iostream>

#include <ATen/ATen.h>

int main() {
  const at::Tensor w = at::ones({3}).set_requires_grad(true);
  attmirror::deep::MirrorDescent optimizer({w}, attmirror::deep::MirrorDescentOptions(0.5).p(3));
  w.square().sum().backward();
  optimizer.step();  // sqrt(1 - 0.5 * 2)
  std::cout << w << '\n';
  return at::equal(w, at::zeros({3})) ? 0 : 1;
}
