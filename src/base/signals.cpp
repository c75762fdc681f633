#include "base/signals.hpp"

#include <attmirror/base/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>

#include <fmt/format.h>
#include <signal.h>

namespace attmirror {
namespace {

constexpr std::array<int, 3> guarded{SIGINT, SIGTERM, SIGHUP};

// A handler may touch only lock-free atomics.
std::atomic<int> received{0};
std::atomic<bool> stop_flag{false};
std::array<std::atomic<bool>, guarded.size()> installed{};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::mutex guard_mutex;
int guards = 0;
std::array<struct sigaction, guarded.size()> previous;

extern "C" void attmirror_take_signal(int number) {
  const int saved_errno = errno;
  int none = 0;
  received.compare_exchange_strong(none, number);
  stop_flag = true;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    if (installed[i]) sigaction(guarded[i], &usual, nullptr);
  }
  errno = saved_errno;
}

void restore() {
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    if (installed[i].exchange(false)) sigaction(guarded[i], &previous[i], nullptr);
  }
}

void install() {
  received = 0;
  stop_flag = false;
  struct sigaction action {};
  action.sa_handler = attmirror_take_signal;
  action.sa_flags = SA_RESTART;  // a file that is being read or written is not to notice
  sigemptyset(&action.sa_mask);
  // While the handler of one signal runs the others wait, so that they find the default action.
  for (const int number : guarded) sigaddset(&action.sa_mask, number);
  for (std::size_t i = 0; i < guarded.size(); ++i) {
    bool refused = sigaction(guarded[i], nullptr, &previous[i]) != 0;
    if (!refused && previous[i].sa_handler == SIG_IGN) continue;
    installed[i] = true;
    refused = refused || sigaction(guarded[i], &action, nullptr) != 0;
    if (refused) {
      const int error = errno;
      installed[i] = false;
      restore();
      throw environment_error(fmt::format("cannot handle signal {}: {}", guarded[i], std::strerror(error)));
    }
  }
}

}  // namespace

SignalGuard::SignalGuard() {
  const std::scoped_lock lock(guard_mutex);
  if (guards == 0) install();
  ++guards;
}

SignalGuard::~SignalGuard() {
  const std::scoped_lock lock(guard_mutex);
  if (--guards == 0) restore();
}

int SignalGuard::interrupted() noexcept { return received.load(std::memory_order_relaxed); }

StopRequest SignalGuard::stop() noexcept { return StopRequest::of(stop_flag); }

}  // namespace attmirror
