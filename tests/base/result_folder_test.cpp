// Result folders: which kind one is, one writer at a time, and nothing of others touched.
#include "base/result_folder.hpp"

#include "base/atomic_file.hpp"
#include "support/child.hpp"
#include "support/files.hpp"

#include <array>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> names{"metrics.jsonl", "final-#.bin", "events/trial-#/curve",
                                                "config.json"};

class ResultFolderTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const fs::path path = folder / "result";

  void write(const fs::path& file, std::string_view text = "mine") const {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, text);
  }
  void write_config(std::string_view format) const {
    write(path / "config.json", fmt::format("{{\"format\": \"{}\", \"format_version\": 1}}", format));
  }
  std::string refused(ResultKind kind = ResultKind::run) const {
    return refusal([&] { ResultFolder result(path, kind, names); });
  }
};

TEST_F(ResultFolderTest, EveryKindIsKnown) {
  EXPECT_EQ(folder_kind(path), ResultKind::none);
  for (const ResultKind kind :
       {ResultKind::run, ResultKind::path, ResultKind::next_token, ResultKind::training}) {
    write_config(format_of(kind));
    EXPECT_EQ(folder_kind(path), kind);
  }
  // config.json decides, whatever else lies there.
  write(path / "results" / "p2-losses.json", "{\n \"format_version\": 1,");
  EXPECT_EQ(folder_kind(path), ResultKind::training);
  for (const char* text : {"{\"format\": \"attmirror", "{\"format\": 7}", "[1]", "{\"theirs\": true}", ""}) {
    write(path / "config.json", text);
    EXPECT_EQ(folder_kind(path), ResultKind::reproduction) << text;
  }
  fs::remove_all(path / "results");
  EXPECT_EQ(folder_kind(path), ResultKind::none);
  write(path / "results" / "accuracy.json", "{\"accuracy\": 0.9}");  // somebody's own results
  write(path / "results" / "notes.txt", "{\"format_version\": 1}");
  EXPECT_EQ(folder_kind(path), ResultKind::none);
  EXPECT_EQ(to_string(ResultKind::next_token), "next-token");
}

TEST_F(ResultFolderTest, BelongsToOneKind) {
  write_config("attmirror path");
  const std::string message = refused();
  EXPECT_NE(message.find("holds a result of attmirror path"), std::string::npos) << message;
  EXPECT_EQ(refused(ResultKind::path), "accepted");
  write(path / "config.json", "{\"theirs\": true}");
  const ResultFolder result(path, ResultKind::path, names);
  expect_bad_input({path.string(), "holds something else", "not a configuration of attmirror path"},
                   [&] { result.refuse_foreign_config(); });
}

TEST_F(ResultFolderTest, HasOneWriter) {
  std::optional<ResultFolder> first;
  first.emplace(path, ResultKind::run, names);
  expect_error(ErrorKind::environment, {path.string(), "is in use", "another process"},
               [&] { ResultFolder second(path, ResultKind::run, names); });
  first.reset();
  EXPECT_EQ(refused(), "accepted");
}

TEST_F(ResultFolderTest, IsRemovedWhereItStayedEmpty) {
  const fs::path deep = path / "a" / "b";
  { const ResultFolder result(deep, ResultKind::run, names); }
  EXPECT_FALSE(fs::exists(path));
  {
    const ResultFolder result(deep, ResultKind::run, names);
    write(deep / "metrics.jsonl");
  }
  EXPECT_TRUE(fs::exists(deep / "metrics.jsonl"));
  fs::create_directory(folder / "theirs");
  { const ResultFolder result(folder / "theirs", ResultKind::run, names); }
  EXPECT_TRUE(fs::exists(folder / "theirs"));
}

TEST_F(ResultFolderTest, LinksInsideAreRefused) {
  write(folder / "mine.txt");
  fs::create_directories(folder / "elsewhere");
  for (const char* name : {"metrics.jsonl", "final-3.bin", "events", "config.json"}) {
    fs::create_directories(path);
    fs::create_symlink(folder / "mine.txt", path / name);
    const std::string message = refused();
    EXPECT_NE(message.find((path / name).string() + " is a symbolic link"), std::string::npos) << message;
    fs::remove_all(path);
  }
  fs::create_directories(path / "events");
  fs::create_symlink(folder / "elsewhere", path / "events" / "trial-0");
  EXPECT_NE(refused().find("trial-0 is a symbolic link"), std::string::npos);
  fs::remove_all(path);
  fs::create_directories(path);
  fs::create_symlink(folder / "nowhere", path / "metrics.jsonl");
  EXPECT_NE(refused().find("symbolic link"), std::string::npos) << "a link that leads nowhere";
  fs::remove(path / "metrics.jsonl");
  // Links of other names are none of ours, and the folder itself may be one.
  fs::create_symlink(folder / "mine.txt", path / "final-thesis.bin");
  EXPECT_EQ(refused(), "accepted");
  fs::create_directory_symlink(path, folder / "link");
  EXPECT_EQ(refusal([&] { ResultFolder result(folder / "link", ResultKind::run, names); }), "accepted");
  EXPECT_EQ(read_text_file(folder / "mine.txt"), "mine");
}

TEST_F(ResultFolderTest, NamesItsFiles) {
  ResultFolder result(path, ResultKind::run, names);
  EXPECT_FALSE(result.holds_result());
  for (const char* name :
       {"final-thesis.bin", "final-.bin", "events/trial-x/curve", "events/notes.txt", "metrics.json"})
    write(path / name);
  EXPECT_FALSE(result.holds_result());
  for (const char* name : {"config.json", "final-12.bin", "events/trial-0/curve"}) write(path / name);
  EXPECT_EQ(result.files(), (std::vector<fs::path>{path / "final-12.bin", path / "events/trial-0/curve",
                                                   path / "config.json"}));
  result.remove("config.json");
  result.remove("config.json");
  EXPECT_FALSE(fs::exists(path / "config.json"));
}

TEST_F(ResultFolderTest, UnfinishedFilesAreKnownByTheirNames) {
  for (const char* name : {".data.npz.tmp-12-0a", ".a.tmp-b.tmp-1-0123456789abcdef"})
    EXPECT_TRUE(is_unfinished(name));
  for (const char* name :
       {"data.npz", ".tmp-1-0", "a.tmp-1-0", ".a.tmp-0-0", ".a.tmp-1-", ".a.tmp-1-xyz", ".a.tmp-notes"})
    EXPECT_FALSE(is_unfinished(name)) << name;
}

TEST_F(ResultFolderTest, LeftoversOfDeadWritersAreRemoved) {
  // A process that dies while it writes, as kill -9 makes it.
  write(path / "config.json");
  Child writer([&] {
    AtomicFile half(path / "metrics.jsonl");
    half.write("half");
    ::_exit(0);
  });
  writer.wait();
  std::size_t left = 0;
  for (const auto& entry : fs::directory_iterator(path))
    left += entry.path().filename().string().starts_with(".metrics.jsonl.tmp-") ? 1 : 0;
  ASSERT_EQ(left, 1u);
  for (const char* name : {".final-3.bin.tmp-1-0", "events/trial-1/.curve.tmp-4711-0123456789abcdef"})
    write(path / name);
  const std::vector<const char*> others{".notes.txt.tmp-1-0",    ".final-thesis.bin.tmp-1-0",
                                        "metrics.jsonl.tmp-1-0", ".metrics.jsonl.tmp-",
                                        ".metrics.jsonl.tmp-1",  ".metrics.jsonl.tmp-1-xyz"};
  for (const char* name : others) write(path / name);
  const ResultFolder result(path, ResultKind::run, names);
  result.remove_leftovers();
  EXPECT_FALSE(fs::exists(path / ".final-3.bin.tmp-1-0"));
  EXPECT_TRUE(fs::is_empty(path / "events" / "trial-1"));
  for (const char* name : others) EXPECT_TRUE(fs::exists(path / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(path), fs::directory_iterator()),
            static_cast<std::ptrdiff_t>(others.size()) + 2);  // config.json, events
}

}  // namespace
}  // namespace attmirror::test
