// The runner: what is kept, what is done again, what a failure and a stop leave behind.
#include "base/atomic_file.hpp"
#include "papers/result_of.hpp"
#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/papers/reproduce.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

// Counts its runs and does what the test wants.
class Trial : public Experiment {
 public:
  enum class Kind { good, throws, stops_midway, out_of_scope, no_findings };
  explicit Trial(std::string id, Kind kind = Kind::good) : id_(std::move(id)), kind_(kind) {}
  ExperimentInfo info() const override {
    return {.id = id_,
            .paper = "ours",
            .item = "a test",
            .title = "a trial",
            .summary = "Nothing.",
            .seconds = 1,
            .quick_seconds = 0.1,
            .out_of_scope = kind_ == Kind::out_of_scope ? "too large" : ""};
  }
  ExperimentResult run(const ExperimentContext& context) const override {
    ++runs;
    if (kind_ == Kind::throws) throw bad_input("labels[17] is 0: expected -1 or +1");
    context.progress(0.5);
    ExperimentResult result;
    if (kind_ == Kind::no_findings) return result;
    Finding finding{.quantity = "x", .published = 1.0, .ours = 1.0 / 3};
    finding.imitated = 0.1 + 0.2;
    result.findings = {finding};
    Figure figure{.id = "f", .title = "t", .caption = "c", .description = "d"};
    figure.series = {
        {.name = "s", .x = {1, 2}, .y = {std::nan(""), std::numeric_limits<double>::infinity()}}};
    figure.x.whole = true;
    result.figures = {figure};
    result.tables = {{"t", Table{.title = "t", .columns = {{"a"}}, .rows = {{"1"}}}}};
    result.configuration = {{"seed", "1"}};
    result.remarks = {"<b>"};
    return result;
  }
  mutable int runs = 0;

 private:
  std::string id_;
  Kind kind_;
};

TEST(Reproduce, ResultsComeBackToTheBit) {
  const Trial trial("trial");
  const std::vector<ExperimentReport> reports = reproduce({&trial});
  ASSERT_EQ(reports.size(), 1u);
  const std::string text = to_json(reports[0]);
  const ExperimentReport back = parse_report(text);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.result.findings[0].ours, 1.0 / 3);
  EXPECT_EQ(back.result.findings[0].imitated, 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(back.result.figures[0].series[0].y[0]));
  EXPECT_TRUE(std::isinf(back.result.figures[0].series[0].y[1]));
  EXPECT_TRUE(back.result.figures[0].x.whole);
  EXPECT_FALSE(back.result.figures[0].y.whole);
}

TEST(Reproduce, WhatIsNoResultIsRefused) {
  EXPECT_THROW(parse_report(""), Error);
  EXPECT_THROW(parse_report("{}"), Error);
  EXPECT_THROW(parse_report("[1, 2]"), Error);
  const Trial trial("trial");
  std::string text = to_json(reproduce({&trial})[0]);
  EXPECT_THROW(parse_report(text.substr(0, text.size() / 2)), Error);
  const std::size_t at = text.find("\"format_version\": 1");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 19, "\"format_version\": 9");
  EXPECT_THROW(parse_report(text), Error);
}

TEST(Reproduce, GoesOnWhereItWas) {
  const test::TemporaryFolder folder;
  const Trial first("first"), second("second");
  ReproduceOptions options{.extent = Extent::quick, .folder = folder.path()};
  reproduce({&first}, options);
  EXPECT_EQ(first.runs, 1);
  const std::vector<ExperimentReport> reports = reproduce({&first, &second}, options);
  EXPECT_EQ(first.runs, 1) << "it is in the folder";
  EXPECT_EQ(second.runs, 1);
  EXPECT_TRUE(reports[0].from_folder);
  EXPECT_FALSE(reports[1].from_folder);
  options.extent = Extent::full;
  reproduce({&first}, options);
  EXPECT_EQ(first.runs, 2) << "the folder has the quick version";
  options.again = true;
  reproduce({&first}, options);
  EXPECT_EQ(first.runs, 3);
}

TEST(Reproduce, ADamagedResultIsDoneAgain) {
  const test::TemporaryFolder folder;
  const Trial trial("trial");
  const ReproduceOptions options{.folder = folder.path()};
  reproduce({&trial}, options);
  const fs::path file = folder.path() / "results" / "trial.json";
  write_file_atomically(file, std::string_view("{\"format_version\": 1"));
  EXPECT_THROW(load_reports(folder.path()), Error);
  const std::vector<ExperimentReport> reports = reproduce({&trial}, options);
  EXPECT_EQ(trial.runs, 2);
  EXPECT_FALSE(reports[0].from_folder);
  EXPECT_EQ(load_reports(folder.path()).size(), 1u);
}

TEST(Reproduce, AResultOfAnotherVersionIsDoneAgain) {
  const test::TemporaryFolder folder;
  const Trial trial("trial");
  const ReproduceOptions options{.folder = folder.path()};
  ExperimentReport old = reproduce({&trial}, options)[0];
  old.version = "0.0.1";
  write_file_atomically(folder.path() / "results" / "trial.json", to_json(old));
  reproduce({&trial}, options);
  EXPECT_EQ(trial.runs, 2);
}

TEST(Reproduce, AFailureDoesNotStopTheOthers) {
  const test::TemporaryFolder folder;
  const Trial bad("bad", Trial::Kind::throws), empty("empty", Trial::Kind::no_findings), good("good"),
      scope("scope", Trial::Kind::out_of_scope);
  const std::vector<ExperimentReport> reports =
      reproduce({&bad, &empty, &good, &scope}, {.folder = folder.path()});
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[0].outcome, ExperimentOutcome::failed);
  EXPECT_EQ(reports[0].error, "labels[17] is 0: expected -1 or +1");
  EXPECT_EQ(reports[1].outcome, ExperimentOutcome::failed) << "an experiment without findings shows nothing";
  EXPECT_EQ(reports[2].outcome, ExperimentOutcome::done);
  EXPECT_EQ(reports[3].outcome, ExperimentOutcome::out_of_scope);
  EXPECT_EQ(scope.runs, 0);
  EXPECT_FALSE(fs::exists(folder.path() / "results" / "bad.json"));
  make_page(reports).validate();
}

TEST(Reproduce, AStopKeepsWhatIsDone) {
  const test::TemporaryFolder folder;
  const Trial first("first"), second("second"), third("third");
  const StopRequest stop = StopRequest::make();
  const auto ask_in_the_second = [&](const ReproduceProgress& now) {
    if (now.finished == 1) stop.request();
  };
  const std::vector<ExperimentReport> reports = reproduce(
      {&first, &second, &third}, {.folder = folder.path()}, {.on_progress = ask_in_the_second, .stop = stop});
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].outcome, ExperimentOutcome::done);
  EXPECT_EQ(reports[1].outcome, ExperimentOutcome::interrupted);
  EXPECT_TRUE(fs::exists(folder.path() / "results" / "first.json"));
  EXPECT_FALSE(fs::exists(folder.path() / "results" / "second.json"));
  EXPECT_EQ(third.runs, 0);
}

TEST(Reproduce, StoppedBeforeTheFirstResultItGoesOnLater) {
  const test::TemporaryFolder folder;
  const Trial trial("trial");
  const auto stop = [](const ReproduceProgress&) { return false; };
  reproduce({&trial}, {.folder = folder / "out"}, {.on_progress = stop, .on_report = {}});
  reproduce({&trial}, {.folder = folder / "out"});
  EXPECT_TRUE(fs::exists(folder / "out" / "results" / "trial.json"));
  EXPECT_NE(read_text_file(folder / "out" / "report.html").find("trial"), std::string::npos);
}

// A kill while the first result was written leaves its beginning, and that is nobody's.
TEST(Reproduce, KilledAtTheFirstResultItGoesOnLater) {
  const test::TemporaryFolder folder;
  const Trial first("one");
  fs::create_directories(folder / "out/results");
  write_file_atomically(folder / "out/results/.one.json.tmp-1-0123456789abcdef", "{\"format_ver");
  EXPECT_EQ(reproduce({&first}, {.folder = folder / "out"}).size(), 1u);
  EXPECT_FALSE(fs::exists(folder / "out/results/.one.json.tmp-1-0123456789abcdef"));
  // Something that only looks like one is somebody's.
  fs::create_directories(folder / "other/results");
  write_file_atomically(folder / "other/results/.one.json.tmp-notes", "mine");
  test::expect_error(ErrorKind::bad_input, {"holds other things"},
                     [&] { reproduce({&first}, {.folder = folder / "other"}); });
}

TEST(Reproduce, ProgressIsAShareOfAllWork) {
  const Trial first("first"), second("second");
  std::vector<double> shares;
  reproduce({&first, &second}, {},
            {.on_progress = [&](const ReproduceProgress& now) { shares.push_back(now.share); }});
  EXPECT_EQ(shares, (std::vector<double>{0, .25, .5, .75}));
}

TEST(Reproduce, AFolderThatCannotBeMadeIsSaidBeforeTheWork) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.path() / "file", std::string_view("x"));
  const Trial trial("trial");
  EXPECT_THROW(reproduce({&trial}, {.folder = folder.path() / "file" / "out"}), Error);
  EXPECT_EQ(trial.runs, 0);
}

TEST(Registry, EveryExperimentIsDescribed) {
  std::vector<std::string> ids;
  for (const Experiment* experiment : experiments()) {
    const ExperimentInfo info = experiment->info();
    SCOPED_TRACE(info.id);
    for (const std::string* text : {&info.id, &info.paper, &info.item, &info.title, &info.summary})
      EXPECT_FALSE(text->empty());
    EXPECT_EQ(std::ranges::count(ids, info.id), 0);
    EXPECT_EQ(&find_experiment(info.id), experiment);
    ids.push_back(info.id);
  }
  try {
    find_experiment("p1-seting-a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("p1-setting-a"), std::string::npos) << error.what();
  }
  EXPECT_THROW(add_experiment(std::make_unique<Trial>("p1-setting-a")), Error);
}

// Every quick version: runs, is shown, and has the same results for any number of threads.
TEST(Registry, QuickVersionsDoNotDependOnThreads) {
  const std::vector<ExperimentReport> one = reproduce(experiments(), {.extent = Extent::quick, .threads = 1});
  ASSERT_EQ(one.size(), experiments().size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NE(one[i].outcome, ExperimentOutcome::failed) << one[i].info.id << ": " << one[i].error;
    ExperimentReport three = one[i];
    three.result = test::quick_result(one[i].info.id);  // by three threads
    EXPECT_EQ(to_json(one[i]), to_json(three)) << one[i].info.id;
    if (one[i].info.recorded) continue;  // trainings differ where they differ
    for (const Finding& finding : one[i].result.findings) {
      // The one known exception of the quick versions: it is what we see, and what the page says.
      if (finding.quantity.starts_with("Adam, β₂ = 0.999")) continue;
      EXPECT_NE(judge(finding), Verdict::differs)
          << one[i].info.id << ": " << finding.quantity << " is " << finding.ours;
    }
  }
  make_page(one).validate();
}

}  // namespace
}  // namespace attmirror
