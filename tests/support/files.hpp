// What tests of files share: a folder that vanishes, bytes, and the check of a refusal.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror::test {

// An empty folder under the system's folder for temporary files, removed with all it holds at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attmirror-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Names of all that lies in the folder.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      result.push_back(entry.path().filename().string());
    return result;
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Expects `action` to throw an Error of this kind whose message holds all of `words`.
template <class Action>
void expect_error(ErrorKind kind, std::initializer_list<std::string_view> words, Action action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), kind) << message;
    for (const auto word : words)
      EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
    return;
  }
  ADD_FAILURE() << "no Error was thrown";
}

// The message of the Error (bad input) that `action` throws, or "accepted".
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "accepted";
}

template <class Action>
void expect_bad_input(std::initializer_list<std::string_view> words, Action action) {
  expect_error(ErrorKind::bad_input, words, action);
}

}  // namespace attmirror::test
