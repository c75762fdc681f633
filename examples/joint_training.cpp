// Attention weights W and decoder v trained together from zero: the joint experiment of the first paper.
//
// With v = 0 no token is better than another, so the first step moves v alone and W follows.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(JointData{});
  const Attention model{data, W{}, Logistic{}, {.train = {Block::W, Block::v}}};
  const DescentRun run = descend(model, MirrorDescent{.p = 1.75, .lr = 0.1, .normalized = true},
                                 {.steps = 1'500, .record = RecordSchedule::at({0, 1, 2, 10, 100})});

  for (const Record& record : run.records) {
    const Parameters& now = record.parameters;
    std::printf("step %4lld  softmax %.4f  |W|_p %7.3f  v (%.4f, %.4f)\n",
                static_cast<long long>(record.step), record.max_softmax, record.norm, now.v[0], now.v[1]);
  }
  std::printf("selected tokens %s\n", to_string(run.selected).c_str());
}
