// The made-up records of tests/fixtures/records, and what the reader says of them once they are changed.
#pragma once

#include "papers/records.hpp"
#include "support/paths.hpp"
#include <attmirror/base/error.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror::test {

inline std::string record_file(const std::string& name) {
  std::ifstream file(fixture("records/" + name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline const std::vector<std::string> fixture_configs{"adam", "md-1.1", "md-2", "md-3"};

inline std::vector<TrainingRecord> read(const std::string& runs, const std::string& curves) {
  return read_records({.runs = runs, .curves = curves, .configs = fixture_configs});
}

// The text with the first `from` replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

inline void expect_refused(const std::string& runs, const std::string& curves, const std::string& message) {
  try {
    read(runs, curves);
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), message);
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  }
}

}  // namespace attmirror::test
