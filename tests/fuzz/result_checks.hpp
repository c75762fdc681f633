// What the readers of results owe whatever they are given, for the fuzzer and for the ordinary tests that run its
// corpus.
//
// The first byte of an input says which file it is, the rest is its text:
//
//   c  config.json of a run        r  result.json of a run         p  config.json of a path
//   m  metrics.jsonl, s results.json, and t config.json of a training of attmirror deep
//   e  results/ID.json of a reproduction                           k  any config.json: whose is it?
#pragma once

#include "base/atomic_file.hpp"
#include "base/json.hpp"
#include "base/result_folder.hpp"
#include "check_parser.hpp"
#include "descent/saved_path.hpp"
#include "pages/training_folder.hpp"
#include "scratch_folder.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/papers/reproduce.hpp>

#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace attmirror::fuzz {

// What reads the text and writes it again. Values are compared as they are written, and those that are read from what
// was written must be the same.
template <class Rewrite>
void check_rewriting(std::string_view text, Rewrite rewrite) {
  check_parser(
      std::as_bytes(std::span(text)),
      [&](std::span<const std::byte> file) {
        return rewrite(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()));
      },
      [](const std::string& written) { return std::as_bytes(std::span(written)); });
}

// A value or an Error of one line.
template <class Read>
void check_reading(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (message.empty() || message.find('\n') != std::string_view::npos) std::abort();
  }
}

// A folder whose other files are in order.
inline std::filesystem::path folder_with(const char* name, std::string_view text) {
  static const ScratchFolder path_folder, training_folder, other_folder;
  static const bool made = [] {
    NamedArrays arrays;
    for (const char* array : {"radius", "decoder_radius", "loss", "log_loss", "max_softmax", "gap"})
      arrays.emplace(array, Array(std::span<const double>()));
    for (const char* array : {"evaluations", "start", "status", "selected"})
      arrays.emplace(array, Array(std::span<const std::int64_t>()));
    save_npz(path_folder / "path.npz", arrays);
    write_file_atomically(training_folder / "config.json", R"({"format": "attmirror deep training"})");
    write_file_atomically(training_folder / "metrics.jsonl", "{\"trial\":0,\"epoch\":1,\"step\":3}\n");
    return true;
  }();
  static_cast<void>(made);
  const std::string_view where = name;
  const auto& folder = where.starts_with("path/")       ? path_folder
                       : where.starts_with("training/") ? training_folder
                                                        : other_folder;
  std::ofstream(folder / std::string(where.substr(where.find('/') + 1)), std::ios::binary) << text;
  return folder.path();
}

// What a result.json is read for.
inline std::string text_of(const RunResult& result) {
  const auto tokens = [](const std::optional<Selection>& selection) {
    return selection ? Json(selection->tokens) : Json();
  };
  return dump(Json{{"status", to_string(result.status)},
                   {"steps", result.steps},
                   {"loss", finite_or_null(result.loss)},
                   {"max_softmax", finite_or_null(result.max_softmax)},
                   {"norm", finite_or_null(result.norm)},
                   {"seconds", finite_or_null(result.seconds)},
                   {"selected", tokens(result.selected)},
                   {"optimal", tokens(result.optimal)}});
}

inline void check_results(std::span<const std::byte> file) {
  if (file.empty()) return;
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 1, file.size() - 1);
  switch (std::to_integer<char>(file[0])) {
    case 'c':
      return check_rewriting(text,
                             [](std::string_view one) { return to_json(parse_run_config(one, "file")); });
    case 'r':
      return check_rewriting(text, [](std::string_view one) { return text_of(parse_result(one)); });
    case 'e':
      return check_rewriting(text, [](std::string_view one) { return to_json(parse_report(one)); });
    case 'p':
      return check_reading([&] { load_saved_path(folder_with("path/config.json", text)); });
    case 'm': {
      const auto folder = folder_with("training/metrics.jsonl", text);
      check_reading([&] { load_training(folder); });
      folder_with("training/metrics.jsonl", "");
      return;
    }
    case 's': {
      folder_with("training/metrics.jsonl", "{\"trial\":0,\"epoch\":1,\"step\":3}\n");
      const auto folder = folder_with("training/results.json", text);
      check_reading([&] { load_training(folder); });
      folder_with("training/results.json", R"({"status": "completed"})");
      return;
    }
    case 't': {
      const auto folder = folder_with("training/config.json", text);
      check_reading([&] { load_training(folder); });
      folder_with("training/config.json", R"({"format": "attmirror deep training"})");
      return;
    }
    case 'k':
      folder_kind(folder_with("other/config.json", text));
      return;
    default:
      return;
  }
}

}  // namespace attmirror::fuzz
