// Ctrl-C as a request, not a blow: a run that is interrupted finishes its step, writes a checkpoint and leaves.
//
// While a SignalGuard lives, SIGINT, SIGTERM and SIGHUP (the terminal was closed) only set a flag that whatever is
// running reads between steps:
//
//   const SignalGuard guard;
//   DescentRun run = descend(model, optimizer, options, {.stop = SignalGuard::stop()});
//   if (SignalGuard::interrupted() != 0) save(run);
//
// The first signal also gives all of them back to the system, so a second Ctrl-C, while the checkpoint is being
// written, kills the process as usual. Signals that the parent process chose to ignore (nohup, background
// jobs) stay ignored.
#pragma once

#include <attmirror/base/stop.hpp>

namespace attmirror {

class SignalGuard {
 public:
  // Guards nest: the outermost installs the handlers and clears the flag, its destructor restores what was
  // there before. Throws Error (environment) if the system refuses.
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The number of the signal that came (SIGINT, SIGTERM, SIGHUP), or 0. Stays readable after the guard has gone,
  // until the next one is made.
  static int interrupted() noexcept;
  // Requested by the signal, and forgotten when the next outermost guard is made.
  static StopRequest stop() noexcept;
};

}  // namespace attmirror
