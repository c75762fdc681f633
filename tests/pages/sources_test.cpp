// What lies at a path, and mixed pages of it.
#include "pages/sources.hpp"

#include "base/atomic_file.hpp"
#include "margin/solution_summary.hpp"
#include "support/files.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/margin/svm_file.hpp>
#include <attmirror/pages/run_page.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

class Sources : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder;
  const fs::path data_path = folder / "data.npz";
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = 1});
  const Selection tokens{{0, 1, 2}};
  const MarginSolution solution = max_margin(data, tokens, Norm::frobenius());

  Sources() { save_dataset(data_path, data); }

  fs::path saved_solution(const char* name) const {
    save_solution(folder / name, data, AttentionSvm{tokens}, solution);
    return folder / name;
  }
  fs::path saved_path(const char* name, std::vector<double> radii) const {
    const Attention model(data);
    save_path(folder / name, model, regularization_path(model, {.radii = std::move(radii), .starts = 1}),
              {.data = data_path});
    return folder / name;
  }
};

bool says(const std::string& html, std::string_view words) { return html.find(words) != std::string::npos; }

TEST_F(Sources, FilesAreKnownByTheirContent) {
  EXPECT_EQ(result_kind(data_path), ResultKind::none);
  EXPECT_EQ(source_kind(saved_solution("anything.bin")), "solution");
  EXPECT_EQ(source_kind(saved_path("path", {1})), "path");
  test::expect_bad_input({"data.npz", "neither the database of a sweep nor a max-margin solution"},
                         [&] { source_kind(data_path); });
  test::expect_bad_input({"nowhere", "No such file"}, [&] { source_kind(folder / "nowhere"); });
  test::expect_bad_input({"not a folder of results"}, [&] { source_kind(folder.path()); });
}

TEST_F(Sources, ASolutionIsSummarized) {
  const SolutionSummary summary = summarize_solution(load_npz(saved_solution("svm.npz")), "svm.npz");
  EXPECT_EQ(summary.problem, "attention");
  EXPECT_EQ(summary.kind, "2");
  EXPECT_EQ(summary.solution.status, "certified");
  EXPECT_EQ(summary.solution.norm, solution.norm);
  EXPECT_EQ(summary.data_fingerprint, data.fingerprint());
  ASSERT_EQ(summary.solution.support.size(), solution.support.size());
  EXPECT_EQ(summary.solution.support.front().multiplier, solution.lambda.maxCoeff());
  NamedArrays arrays = load_npz(folder / "svm.npz");
  arrays.erase("dual");
  test::expect_bad_input({"svm.npz: dual is missing"}, [&] { summarize_solution(arrays, "svm.npz"); });
}

TEST_F(Sources, PathsAndSolutionsShareAPage) {
  const fs::path one = saved_path("one", {1, 10}), two = saved_path("two", {1, 100});
  const std::string alone = to_html(page_of({one}));
  for (const char* words :
       {"Regularization path one", "How the path went", "figure_paths-loss", "figure_paths-angle",
        "At radius 10, the largest of 2, the least loss is", "max-margin direction"})
    EXPECT_TRUE(says(alone, words)) << words;
  const fs::path svm = saved_solution("svm.npz");
  const std::string single = to_html(page_of({svm}));
  for (const char* words : {"Max-margin solution svm.npz", "The max-margin solution is proved optimal",
                            "Support tokens", "--check"})
    EXPECT_TRUE(says(single, words)) << words;
  const Page page = page_of({svm, one, two, saved_solution("other.npz")});
  EXPECT_EQ(page.title, "Report of 4 results");
  EXPECT_EQ(page.subtitle, "2 regularization paths, 2 max-margin solutions");
  const std::string html = to_html(page);
  for (const char* words : {"Path one", "Path two", "How the paths went", "Max-margin solution other.npz"})
    EXPECT_TRUE(says(html, words)) << words;
}

TEST_F(Sources, APathWithoutItsDataIsShownAllTheSame) {
  const fs::path path = saved_path("path", {1, 10});
  fs::remove(data_path);
  const std::string html = to_html(page_of({path}));
  EXPECT_TRUE(says(html, "There is no max-margin solution to compare with"));
  EXPECT_TRUE(says(html, "figure_paths-loss"));
  EXPECT_FALSE(says(html, "figure_paths-angle"));
}

TEST_F(Sources, AnInterruptedPathMayHaveNoPoint) {
  const Attention model(data);
  RegularizationPath none;
  none.options.radii = {1, 10};
  save_path(folder / "path", model, none, {.data = data_path});
  EXPECT_TRUE(says(to_html(page_of({folder / "path"})), "No radius was reached"));
}

}  // namespace
}  // namespace attmirror
