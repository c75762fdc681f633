// Plain gradient descent moves like log k: what it converges to shows after 1e12 steps, which no loop takes. The flow
// that it follows gets there in about 1,500 gradients: the norm grows by |W_svm| for each unit of log k, and the
// direction approaches the max-margin solution like 1/log^2 k.
#include <attmirror/attmirror.hpp>

#include <cmath>
#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model{data};
  const FlowRun run =
      mirror_flow(model, {.p = 2, .times = log_times(1e2, 1e12, 1), .plain_steps = 1000, .lr = 1});
  const MarginSolution svm = max_margin(data, run.selected, Norm::frobenius());

  std::printf("%s\n%8s %10s %18s %10s\n", summary(run).c_str(), "k", "|W|", "slope / |W_svm|", "D");
  for (std::size_t r = 1; r < run.records.size(); ++r) {
    const FlowRecord &now = run.records[r], &before = run.records[r - 1];
    std::printf("%8.0e %10.3f %18.3f %10.4f\n", now.time, now.norm,
                (now.norm - before.norm) / std::log(now.time / before.time) / svm.norm,
                directional_bregman(svm.W, now.parameters.W, 2));
  }
}
