// Key and query weights of rank 2 in place of one W. Training the factors prefers low rank: the singular
// values of K Q^T show how much of it is used.
#include <attmirror/attmirror.hpp>

#include <cstdio>

#include <Eigen/SVD>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.samples = 4, .tokens = 5, .dim = 8, .seed = 3});
  for (const std::ptrdiff_t rank : {2, 8}) {
    const Attention model{data, KQ{.rank = rank}};
    DescentOptions options{.steps = 2'000};
    options.init.kind = InitKind::uniform;  // K = Q = 0 would be a stationary point
    options.init.seed = 7;
    const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, options);

    const Vector sigma = Eigen::JacobiSVD<Eigen::MatrixXd>(combined_weights(run.last())).singularValues();
    std::printf("rank %td: selected %s, softmax %.4f, singular values relative to the first:", rank,
                to_string(run.selected).c_str(), run.max_softmax);
    for (const double value : sigma) std::printf(" %.3f", value / sigma[0]);
    std::printf("\n");
  }
}
