// A path as a folder: what is written comes back, and what is none of ours is refused.
#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/path_folder.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

class PathFolderTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder;
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 3, .seed = 1});
  const Attention model{data, KQ{2}};
  const RegularizationPath path =
      regularization_path(model, {.norm = Norm::nuclear(), .radii = {1, 5}, .starts = 1});
};

TEST_F(PathFolderTest, ComesBackAsItWasWritten) {
  save_path(folder / "path", model, path, {.data = "data.npz"});
  const std::vector<PathPoint> points = load_path(folder / "path");
  ASSERT_EQ(points.size(), 2U);
  for (std::size_t k = 0; k < 2; ++k) {
    const PathPoint &a = path.points[k], &b = points[k];
    EXPECT_EQ(a.radius, b.radius);
    EXPECT_EQ(a.status, b.status);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.log_loss, b.log_loss);
    EXPECT_EQ(a.gap, b.gap);
    EXPECT_EQ(a.evaluations, b.evaluations);
    EXPECT_EQ(a.start, b.start);
    EXPECT_EQ(a.selected, b.selected);
    EXPECT_EQ(a.parameters.K, b.parameters.K);
    EXPECT_EQ(a.parameters.Q, b.parameters.Q);
    EXPECT_EQ(a.parameters.v, b.parameters.v);
  }
}

TEST_F(PathFolderTest, OfAnInterruptedPathMayBeEmpty) {
  RegularizationPath none = path;
  none.points.clear();
  save_path(folder / "path", model, none, {.data = "data.npz"});
  EXPECT_TRUE(load_path(folder / "path").empty());
}

TEST_F(PathFolderTest, IsNotWrittenOverSomethingElse) {
  std::filesystem::create_directory(folder / "other");
  write_file_atomically(folder / "other" / "config.json",
                        std::string_view("{\"format\": \"attmirror run\"}"));
  test::expect_bad_input({"other holds a result of attmirror train"},
                         [&] { save_path(folder / "other", model, path, {.data = "data.npz"}); });
  EXPECT_EQ(read_text_file(folder / "other" / "config.json"), "{\"format\": \"attmirror run\"}");
  EXPECT_FALSE(std::filesystem::exists(folder / "other" / "path.npz"));
  EXPECT_THROW(load_path(folder / "other"), Error);
  EXPECT_THROW(load_path(folder / "nowhere"), Error);
}

TEST_F(PathFolderTest, HasOneWriterAndKeepsWhatCameMeanwhile) {
  PathFolder writer(folder / "path");
  EXPECT_FALSE(writer.holds_path());
  test::expect_error(ErrorKind::environment, {"is in use"}, [&] { PathFolder second(folder / "path"); });
  // As if another one had written where there are no locks.
  write_file_atomically(folder / "path" / "metrics.jsonl", std::string_view("theirs"));
  test::expect_error(ErrorKind::environment, {"meanwhile"},
                     [&] { writer.save(model, path, {.data = "data.npz"}); });
  EXPECT_EQ(read_text_file(folder / "path" / "metrics.jsonl"), "theirs");
}

TEST_F(PathFolderTest, ThatStaysEmptyIsRemoved) {
  { const PathFolder writer(folder / "new" / "path"); }
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST_F(PathFolderTest, HasNoLinks) {
  std::filesystem::create_directory(folder / "path");
  write_file_atomically(folder / "mine.npz", std::string_view("mine"));
  std::filesystem::create_symlink(folder / "mine.npz", folder / "path" / "path.npz");
  test::expect_bad_input({"path.npz", "symbolic link"},
                         [&] { save_path(folder / "path", model, path, {.data = "data.npz"}); });
  EXPECT_EQ(read_text_file(folder / "mine.npz"), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder / "path" / "metrics.jsonl"));
}

}  // namespace
}  // namespace attmirror
