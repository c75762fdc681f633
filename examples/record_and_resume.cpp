// A run that is stopped and goes on later, in another process if need be, has the same bits as one that never
// stopped.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.seed = 2});
  const Attention model{data};
  const MirrorDescent rule{.p = 3, .lr = 0.1, .normalized = true};
  DescentOptions options{.steps = 5'000, .record = RecordSchedule::parse("log:4"), .keep = Keep::metrics};

  const Run whole = descend(model, rule, options);
  for (const Record& record : whole.records)
    std::printf("step %5lld  loss %.9f  |W|_3 %8.4f\n", static_cast<long long>(record.step), record.loss,
                record.norm);

  options.steps = 1'234;
  Descent first_part(model, rule, options);
  first_part.run();
  save_checkpoint("checkpoint.npz", first_part.checkpoint());

  options.steps = 5'000;
  Descent second_part(model, rule, options, load_checkpoint("checkpoint.npz"));
  const Run resumed = second_part.run();
  const bool same = resumed.last().W == whole.last().W && resumed.records.size() == whole.records.size();
  std::printf("resumed at step 1234: %s\n", same ? "same bits" : "differs");
  return same ? 0 : 1;
}
