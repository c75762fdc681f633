// What the configuration of attmirror deep train owes whatever it is given, for the fuzzer and for the ordinary tests
// that run its corpus.
#pragma once

#include "check_parser.hpp"
#include <attmirror/deep/train_config.hpp>

#include <span>
#include <string>
#include <string_view>

namespace attmirror::fuzz {

// A configuration or an Error. A configuration can be written, and what it is written as belongs to it.
inline void check_trainer(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  try {
    const TrainConfig config = parse_train_config(text, "file.toml", "/nonexistent");
    const std::string written = to_json(config);
    if (first_difference(written, config, "config.json")) std::abort();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.find('\n') != std::string_view::npos) std::abort();
  }
  // As config.json of a training that somebody wants to go on with.
  try {
    static const TrainConfig plain;
    first_difference(text, plain, "config.json");
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace attmirror::fuzz
