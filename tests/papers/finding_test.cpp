// Verdicts follow from tolerances.
#include <attmirror/papers/finding.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

Finding finding(double published, double ours, Tolerance tolerance) {
  Finding f;
  f.quantity = "x";
  f.published = published;
  f.ours = ours;
  f.tolerance = tolerance;
  return f;
}

TEST(Finding, EachKindOfTolerance) {
  EXPECT_EQ(judge(finding(1, 1.009, Tolerance::absolute(0.01))), Verdict::reproduced);
  EXPECT_EQ(judge(finding(1, 1.011, Tolerance::absolute(0.01))), Verdict::differs);
  EXPECT_EQ(judge(finding(-200, -201.9, Tolerance::relative(0.01))), Verdict::reproduced);
  EXPECT_EQ(judge(finding(-200, -202.1, Tolerance::relative(0.01))), Verdict::differs);
  EXPECT_EQ(judge(finding(0.99, 0.995, Tolerance::at_least())), Verdict::reproduced);
  EXPECT_EQ(judge(finding(0.99, 0.985, Tolerance::at_least())), Verdict::differs);
  EXPECT_EQ(judge(finding(0.01, 0.02, Tolerance::at_most())), Verdict::differs);
  EXPECT_EQ(judge(finding(0.01, 0.02, Tolerance::at_most(0.01))), Verdict::reproduced);
}

TEST(Finding, StandardErrorsOfBothAddAndReadingCounts) {
  Finding f = finding(1, 1.14, Tolerance::standard_errors(3));
  EXPECT_EQ(judge(f), Verdict::differs);  // no error at all: only equal numbers agree
  f.standard_error = 0.04;
  EXPECT_EQ(judge(f), Verdict::differs);
  f.published_error = 0.03;
  EXPECT_EQ(judge(f), Verdict::reproduced);
  f.published_error = 0;
  f.reading = 0.03;
  EXPECT_EQ(judge(f), Verdict::reproduced);
}

TEST(Finding, ArtefactNeedsTheOriginalsWayToGiveThePublishedNumber) {
  Finding f = finding(0.185, 0.051, Tolerance::absolute(0.02));
  EXPECT_EQ(judge(f), Verdict::differs);
  f.imitated = 0.3;
  EXPECT_EQ(judge(f), Verdict::differs);
  f.imitated = 0.19;
  EXPECT_EQ(judge(f), Verdict::artefact);
  f.ours = 0.186;  // then there is no defect to speak of
  EXPECT_EQ(judge(f), Verdict::reproduced);
}

TEST(Finding, SamplesThatCannotDecideAreInconclusive) {
  // Standard errors: the same distance, with more and more runs behind it.
  Finding f = finding(0.3, 0.36, Tolerance::standard_errors(3));
  f.standard_error = 0.06;
  EXPECT_EQ(judge(f), Verdict::inconclusive);  // 0.18 is more than half of 0.3
  f.standard_error = 0.04;
  EXPECT_EQ(judge(f), Verdict::reproduced);
  f.resolution = 0.1;
  EXPECT_EQ(judge(f), Verdict::inconclusive);
  f.standard_error = 0.01;
  EXPECT_EQ(judge(f), Verdict::differs);
  f.ours = 1;  // far away is far away, however few the runs
  f.standard_error = 0.2;
  EXPECT_EQ(judge(f), Verdict::differs);

  // A bound: both ends of the interval must be on the same side.
  f = finding(1, 0.936, Tolerance::at_least(0.05));
  EXPECT_EQ(judge(f), Verdict::differs);
  f.standard_error = 0.031;
  EXPECT_EQ(judge(f), Verdict::inconclusive);
  f.ours = 0.96;
  EXPECT_EQ(judge(f), Verdict::inconclusive);
  f.standard_error = 0.004;
  EXPECT_EQ(judge(f), Verdict::reproduced);
  f.ours = 0.93;
  EXPECT_EQ(judge(f), Verdict::differs);
  f = finding(-1, -0.97, Tolerance::absolute(0.1));
  f.standard_error = 0.1;
  EXPECT_EQ(judge(f), Verdict::inconclusive);

  // The imitation of a defect is a sample, too.
  f = finding(0.2, 0.05, Tolerance::standard_errors(3));
  f.standard_error = 0.001;
  f.imitated = 0.21;
  f.imitated_error = 0.01;
  EXPECT_EQ(judge(f), Verdict::artefact);
  f.imitated_error = 0.05;
  EXPECT_EQ(judge(f), Verdict::inconclusive);
  EXPECT_EQ(to_string(judge(f)), "inconclusive");
}

TEST(Finding, TextsAndNothingPublishedAndNaN) {
  Finding f;
  EXPECT_EQ(judge(f), Verdict::unpublished);
  f.published_text = "(1, 0)";
  f.ours_text = "(1, 0)";
  EXPECT_EQ(judge(f), Verdict::reproduced);
  f.ours_text = "(0, 0)";
  EXPECT_EQ(judge(f), Verdict::differs);
  EXPECT_EQ(judge(finding(1, std::nan(""), Tolerance::at_least(5))), Verdict::differs);
  EXPECT_EQ(judge(finding(1, std::nan(""), Tolerance::absolute(5))), Verdict::differs);
}

TEST(Finding, TableSaysHowTheVerdictWasReached) {
  Finding f = finding(0.185, 0.0512345, Tolerance::standard_errors(3));
  f.standard_error = 0.00123;
  f.reading = 0.005;
  f.imitated = 0.187;
  f.note = "tokens of another run";
  f.source = ReferenceSource::figure;
  const Table table = findings_table("t", {f});
  table.validate();
  const std::vector<std::string> expected{"x",
                                          "0.185",
                                          "figure",
                                          "0.05123 ± 0.0012",
                                          "3 standard errors + 0.005",
                                          "artefact",
                                          "the original procedure gives 0.187: tokens of another run"};
  EXPECT_EQ(table.rows.at(0), expected);
}

// Counts of weights scatter by hundreds.
TEST(Finding, LargeErrorsAreWholeNumbers) {
  Finding f = finding(18206, 14215, Tolerance::standard_errors(3));
  f.digits = 5;
  f.published_error = 99.2;
  f.standard_error = 341.4;
  const Table table = findings_table("t", {f});
  EXPECT_EQ(table.rows.at(0).at(1), "18206 ± 99");
  EXPECT_EQ(table.rows.at(0).at(3), "14215 ± 341");
}

}  // namespace
}  // namespace attmirror
