// Fuzzes parse_sweep(): TOML, the schema, axes and ranges, and the checks of every run.
#include "check_parser.hpp"
#include <attmirror/sweep/plan.hpp>

#include <string>
#include <vector>

namespace {

using Keys = std::vector<std::string>;

// What matters of a sweep: its runs and what is recorded. Reading the same text again must give the same.
struct Sweep {
  std::string text;
  Keys keys;
  friend bool operator==(const Sweep&, const Sweep&) = default;
};

Sweep read(std::span<const std::byte> file) {
  using namespace attmirror;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  // Few runs keep a round short; the folder has no files, so that none is read.
  const SweepPlan plan = parse_sweep(text, "sweep.toml", "/nonexistent", {.max_runs = 50});
  if (plan.runs.empty() || plan.record_text.empty()) std::abort();
  Sweep sweep{plan.text, {}};
  for (const RunSettings& run : plan.runs) {
    if (run.key.size() != 16 || run.cells.size() != plan.columns.size()) std::abort();
    sweep.keys.push_back(run.key);
  }
  for (const std::string& command : commands_of(plan, 0))
    if (!command.starts_with("attmirror ")) std::abort();
  return sweep;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attmirror::fuzz::check_parser(attmirror::fuzz::as_file(data, size), read,
                                [](const Sweep& sweep) { return std::as_bytes(std::span(sweep.text)); });
  return 0;
}
