// A prompt vector p in place of W: logits are X A^T p with A fixed (here the identity), as in "Max-Margin
// Token Selection in Attention Mechanism". One sequence of that paper: token 0 has the best score, and p
// turns towards it.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  DatasetArrays arrays;
  arrays.lengths = {3};
  arrays.tokens.resize(3, 3);
  arrays.tokens << -0.1, 1, 1, /**/ 1, 0, 0.9, /**/ 0, 0, 0;
  arrays.queries = Matrix::Zero(1, 3);  // a prompt model has no queries
  arrays.labels = {1};
  arrays.decoder = Vector::Unit(3, 2);
  const Dataset data(arrays);

  Matrix first_two = Matrix::Zero(3, 3);  // attention sees two coordinates, the third is the score
  first_two(0, 0) = first_two(1, 1) = 1;
  const Attention model{data, Prompt{first_two}};
  for (const double y : {0.0, -1.5}) {  // the start decides which locally optimal token wins
    DescentOptions options{.steps = 1'000};
    options.init.given.p = Vector::Zero(3);
    options.init.given.p[1] = y;
    const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, options);
    const Vector direction = run.last().p.normalized();
    std::printf("from (0, %g): token %s, direction (%.4f, %.4f)\n", y, to_string(run.selected).c_str(),
                direction[0], direction[1]);
  }
}
