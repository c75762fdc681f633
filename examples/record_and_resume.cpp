// A run that is stopped and goes on later, in another process if need be, has the same bits as one that
// never stopped.
#include <attmirror/attmirror.hpp>

#include <chrono>
#include <cstdio>
#include <thread>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.seed = 2});
  const Attention model{data};
  const MirrorDescent rule{.p = 3, .lr = 0.1, .normalized = true};
  DescentOptions options{.record = RecordSchedule::parse("log:4"), .keep = Keep::metrics};

  // Any thread may ask, and so may a callback or a signal handler.
  const StopRequest stop = StopRequest::make();
  std::thread user([stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request();
  });
  options.steps = 1'000'000'000;
  Descent first_part(model, rule, options);
  const DescentRun stopped = first_part.run({.stop = stop});
  user.join();
  std::printf("%s\n", summary(stopped).c_str());  // interrupted after ...
  save_checkpoint("checkpoint.npz", first_part.checkpoint());

  options.steps = stopped.steps + 5'000;
  Descent second_part(model, rule, options, load_checkpoint("checkpoint.npz"));
  const DescentRun resumed = second_part.run();
  for (const Record& record : resumed.records)
    std::printf("step %5lld  loss %.9f  |W|_3 %8.4f\n", static_cast<long long>(record.step), record.loss,
                record.norm);

  const DescentRun whole = descend(model, rule, options);
  const bool same = resumed.last().W == whole.last().W && resumed.records.size() == whole.records.size();
  std::printf("resumed at step %lld: %s\n", static_cast<long long>(stopped.steps),
              same ? "same bits" : "differs");
  return same ? 0 : 1;
}
