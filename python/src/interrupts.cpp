// Ctrl-C during a computation.
//
// Python's own handler for SIGINT only takes a note, which the interpreter acts on between two instructions; a call
// into the library is one instruction. So during a call a handler of ours stands before Python's: it sets the flag that
// computations look at, then does what Python's would have done. After the call the note is acted on, and
// KeyboardInterrupt (or whatever the user's handler does) comes a moment after the signal, with all files in order.
#include "bridge.hpp"

#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

namespace attmirror::python {

namespace {

// The innermost call that listens; a callback may make another one.
std::atomic<StopOnInterrupt*> innermost{nullptr};
struct sigaction pythons_action;

bool in_main_thread() { return ::syscall(SYS_gettid) == ::getpid(); }

}  // namespace

void on_interrupt(int signal) {
  for (StopOnInterrupt* call = innermost.load(); call != nullptr; call = call->outer_)
    call->flag_.store(true);
  if (pythons_action.sa_handler != SIG_IGN && pythons_action.sa_handler != SIG_DFL)
    pythons_action.sa_handler(signal);
}

StopOnInterrupt::StopOnInterrupt() {
  if (!in_main_thread()) return;
  outer_ = innermost.load();
  if (outer_ == nullptr) {
    struct sigaction now {};
    ::sigaction(SIGINT, nullptr, &now);
    // Without a handler of Python's there is nobody to tell: the process ends, or ignores the signal, as it was told.
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler == SIG_IGN || now.sa_handler == SIG_DFL) return;
    pythons_action = now;
    innermost.store(this);
    now.sa_handler = on_interrupt;
    ::sigaction(SIGINT, &now, nullptr);
  } else {
    innermost.store(this);
  }
  active_ = true;
}

StopOnInterrupt::~StopOnInterrupt() {
  if (!active_) return;
  if (outer_ == nullptr) ::sigaction(SIGINT, &pythons_action, nullptr);
  innermost.store(outer_);
}

void StopOnInterrupt::run_handlers() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace attmirror::python
