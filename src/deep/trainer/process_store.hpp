// Where processes exchange their addresses: a small server of process 0, or a file. Internal; for sources that include
// c10d's headers.
#pragma once

#include "deep/trainer/processes.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace attmirror::deep {

inline c10::intrusive_ptr<c10d::Store> open_store(const MeetingPlace& meeting, const ProcessPlace& place) {
  constexpr std::chrono::seconds joining_timeout{120};
  c10::intrusive_ptr<c10d::Store> store;
  if (meeting.address.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(meeting.file.string(), static_cast<int>(place.size));
  } else {
    c10d::TCPStoreOptions options;
    options.port = meeting.port;
    options.isServer = place.rank == 0;
    options.numWorkers = static_cast<std::size_t>(place.size);
    options.timeout = joining_timeout;
    store = c10::make_intrusive<c10d::TCPStore>(meeting.address, options);
  }
  store->setTimeout(joining_timeout);
  return store;
}

// LibTorch's messages go on with a listing of the stack.
inline std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace attmirror::deep
