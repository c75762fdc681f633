// One published number next to ours, with a verdict that follows from a stated tolerance and from nothing else.
//
//   reproduced   ours is within the tolerance of the published number
//   artefact     it is not, and the original's own procedure, repeated here with its defect, gives the published
//                number: the figure shows the defect
//   differs      neither
//   new          nothing was published; ours is what we found
#pragma once

#include <attmirror/base/table.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// How a number of ours compares with the published one.
enum class Verdict { reproduced, artefact, differs, unpublished };
std::string_view to_string(Verdict verdict);  // "reproduced", "artefact", "differs", "new"

// Where a published number comes from.
enum class ReferenceSource {
  figure,      // read off a figure that the authors published
  printed,     // printed in the paper or in the output of the authors' code
  recomputed,  // not published: recomputed from the published settings by independent NumPy and PyTorch code
  theory,      // a theorem or a closed form
};
std::string_view to_string(ReferenceSource source);

// How far ours may be from the published number.
struct Tolerance {
  // What the value of a tolerance is relative to.
  enum class Kind {
    absolute,         // |ours - published| <= value
    relative,         // |ours - published| <= value |published|
    standard_errors,  // |ours - published| <= value times the standard error of their difference
    at_least,         // ours >= published - value
    at_most,          // ours <= published + value
  };
  Kind kind = Kind::relative;
  double value = 0;

  static Tolerance absolute(double value) { return {Kind::absolute, value}; }
  static Tolerance relative(double value) { return {Kind::relative, value}; }
  static Tolerance standard_errors(double value) { return {Kind::standard_errors, value}; }
  static Tolerance at_least(double slack = 0) { return {Kind::at_least, slack}; }
  static Tolerance at_most(double slack = 0) { return {Kind::at_most, slack}; }
};

// One number: published, ours, the tolerance between them.
struct Finding {
  std::string quantity;  // "mean divergence of p = 3 from q = 2 at step 20,000"
  std::optional<double> published{};
  ReferenceSource source = ReferenceSource::recomputed;
  double ours = std::numeric_limits<double>::quiet_NaN();
  // The standard errors of both as means over runs; 0: none. The published one is often unknown: leave it 0.
  double standard_error = 0, published_error = 0;
  // How precisely the published number is known: half a unit of its last digit, or of what can be read off a
  // figure. Added to every kind of tolerance.
  double reading = 0;
  Tolerance tolerance{};
  // What the original's procedure gives here, with its defect; `note` says which defect.
  std::optional<double> imitated{};
  double imitated_error = 0;  // its standard error
  // Instead of numbers: a selection, a list. Reproduced if they are equal.
  std::optional<std::string> published_text{};
  std::string ours_text{};
  std::string note{};  // why it differs, what the defect is, what is new about it
  int digits = 4;      // significant ones, in tables
};

// NaN is never within a tolerance.
Verdict judge(const Finding& finding);

// "3 standard errors", "1 %", "at least": how the verdict was reached.
std::string tolerance_text(const Finding& finding);

// The cells of its row in findings_table().
std::vector<std::string> finding_cells(const Finding& finding);

// quantity | published | source | ours | tolerance | verdict | note
Table findings_table(const std::string& title, const std::vector<Finding>& findings);

}  // namespace attmirror
