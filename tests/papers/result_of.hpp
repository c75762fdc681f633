// An experiment's quick result, and its findings by name.
#pragma once

#include <attmirror/papers/experiment.hpp>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace attmirror::test {

// Computed once for all tests of the program.
inline const ExperimentResult& quick_result(std::string_view id) {
  static std::map<std::string, ExperimentResult, std::less<>> results;
  const auto known = results.find(id);
  if (known != results.end()) return known->second;
  return results.emplace(id, find_experiment(id).run({.extent = Extent::quick, .threads = 3})).first->second;
}

// The first finding whose quantity contains the text.
inline const Finding& named(const ExperimentResult& result, std::string_view text) {
  for (const Finding& finding : result.findings)
    if (finding.quantity.find(text) != std::string::npos) return finding;
  throw std::runtime_error("no finding named " + std::string(text));
}

// The conclusion and what it rests on, a paragraph a line.
inline std::string words_of(const ExperimentResult& result) {
  std::string words = result.conclusion;
  for (const std::string& detail : result.details) words += "\n" + detail;
  return words;
}

// No finding differs, every figure and table is well formed, and there is a configuration.
inline void expect_sound(const ExperimentResult& result) {
  EXPECT_FALSE(result.findings.empty());
  EXPECT_FALSE(result.figures.empty());
  EXPECT_FALSE(result.configuration.empty());
  for (const Finding& finding : result.findings)
    EXPECT_NE(judge(finding), Verdict::differs) << finding.quantity << ": " << finding.ours;
  for (const Figure& figure : result.figures) EXPECT_NO_THROW(figure.validate()) << figure.id;
  for (const NamedTable& one : result.tables) EXPECT_NO_THROW(one.table.validate()) << one.id;
}

}  // namespace attmirror::test
