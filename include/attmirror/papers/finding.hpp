// One published number next to ours, with a verdict that follows from a stated tolerance and from nothing else.
//
//   reproduced   ours is within the tolerance of the published number
//   artefact     it is not, and the original's own procedure, repeated here with its defect, gives the published
//                number: the figure shows the defect
//   differs      neither
//   inconclusive the sample behind ours is too small to tell: see judge()
//   new          nothing was published; ours is what we found
#pragma once

#include <attmirror/base/table.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// How a number of ours compares with the published one.
enum class Verdict { reproduced, artefact, differs, unpublished, inconclusive };
std::string_view to_string(Verdict verdict);  // "reproduced", "artefact", "differs", "new", "inconclusive"

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
  // The deviation that a sample must be able to detect where the tolerance counts standard errors; 0: half of
  // |published|.
  double resolution = 0;
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

// NaN is never within a tolerance. Where ours is a mean over a sample (standard_error > 0), the sample may be too small
// to tell, and then the verdict is `inconclusive`:
//
//   - a tolerance in standard errors grows as the sample shrinks, so that anything is within it in the end. The
//     sample decides only if three of its standard errors are less than `resolution`;
//   - any other tolerance is decided only if all of ours ± 2 standard errors is on the same side of it.
Verdict judge(const Finding& finding);

// "3 standard errors", "1 %", "at least": how the verdict was reached.
std::string tolerance_text(const Finding& finding);

// The cells of its row in findings_table(); the verdict is the one at `verdict_cell`.
inline constexpr std::size_t verdict_cell = 5;
std::vector<std::string> finding_cells(const Finding& finding);

// quantity | published | source | ours | tolerance | verdict | note
Table findings_table(const std::string& title, const std::vector<Finding>& findings);

}  // namespace attmirror
