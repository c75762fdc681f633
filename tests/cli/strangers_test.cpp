// Files and folders of strangers: what they may hold, and what they may not do to the terminal, to other files and to
// memory.
#include "base/signals.hpp"
#include "cli/command.hpp"
#include "sweep/sweep_rows.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using StrangeJson = nlohmann::json;

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

bool has_controls(const std::string& text) {
  for (const unsigned char c : text)
    if ((c < 32 && c != '\n' && c != '\t') || c == 127) return true;
  return text.find("\xc2\x9b") != std::string::npos || text.find("\u202e") != std::string::npos;
}

TEST(Strangers, TextsDoNotCommandTheTerminal) {
  const TemporaryFolder folder;
  const std::string file = (folder / "s.toml").string(), db = (folder / "s.db").string();
  const std::string name = "evil\\u001b]0;owned\\u0007\\u009b31m", description = "a\\u001b[2J\\u202eb";
  write_text(file,
             fmt::format(
                 "[sweep]\nname = \"{}\"\ndescription = \"{}\"\n[train]\nsteps = 3\n[grid]\nseed = \"1:2\"\n",
                 name, description));
  for (const Words& words :
       {Words{"sweep", file, "--dry-run"}, Words{"sweep", file, "-o", db}, Words{"sweep", db, "--summary"},
        Words{"info", db}, Words{"info", db, "--json"}, Words{"sweep", file, "--dry-run", "--json"}}) {
    const Outcome outcome = attmirror_command(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(has_controls(outcome.out)) << outcome.out;
    EXPECT_FALSE(has_controls(outcome.err)) << outcome.err;
    if (words.back() == "--json") {
      const StrangeJson json = StrangeJson::parse(outcome.out);
      EXPECT_EQ(json["name"],
                "evil\x1b]0;owned\x07\xc2\x9b"
                "31m");
    }
  }
}

TEST(Strangers, NamesOfFilesAndArraysStayInTheirLine) {
  const TemporaryFolder folder;
  const std::string path = (folder / "a\n\x1b[31mb.npz").string();
  const std::vector<double> numbers{1, 2};
  const std::string plain = "W~[2J~fake", strange = "W\x1b[2J\nfake";
  std::string archive = to_text(format_npz({{plain, Array(std::span<const double>(numbers))}}));
  for (std::size_t at = 0; (at = archive.find(plain, at)) != std::string::npos;)
    archive.replace(at, plain.size(), strange);
  write_text(path, archive);
  const Outcome outcome = attmirror_command({"info", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(has_controls(outcome.out)) << outcome.out;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 4) << outcome.out;
  expect_refusal({"train", path, "-o", (folder / "run").string()}, 2, {"\\x0a\\x1b[31mb.npz"});
}

TEST(Strangers, APathThatLooksLikeAnOptionIsNone) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  ASSERT_EQ(attmirror_command({"train", data, "--steps", "5", "--quiet", "-o", run}).code, 0);
  StrangeJson config = StrangeJson::parse(file_text(run + "/config.json"));
  config["data"]["path"] = "--overwrite";
  write_text(run + "/config.json", config.dump(2));
  const std::string page = (folder / "page.html").string();
  const Outcome outcome = attmirror_command({"report", run, "-o", page});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(file_text(page).find("attmirror train ./--overwrite"), std::string::npos);
  EXPECT_EQ(file_text(page).find("attmirror train --overwrite"), std::string::npos);
}

TEST(Strangers, InputsThatNeverEndAreRefused) {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string(), out = (folder / "out").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refusal({"sweep", "/dev/zero", "--dry-run"}, 2, {"cannot read /dev/zero", "64 MiB"});
  expect_refusal({"next-token", "/dev/zero", "-o", out}, 2, {"cannot read /dev/zero", "64 MiB"});
  expect_refusal({"sweep", pipe, "--dry-run"}, 2, {"pipe that nobody writes to"});
  expect_refusal({"next-token", pipe, "-o", out}, 2, {"pipe that nobody writes to"});
  EXPECT_FALSE(fs::exists(out));
  // A pipe with a writer is as good as a file.
  std::jthread writer([&] { write_text(pipe, "[train]\nsteps = 3\n"); });
  const Outcome outcome = attmirror_command({"sweep", pipe, "--dry-run", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(StrangeJson::parse(outcome.out)["runs"], 1);
}

TEST(Strangers, NothingIsWrittenThroughALink) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), mine = (folder / "mine").string();
  write_text(mine, "mine");
  fs::create_directory(folder / "theirs");
  const std::string link = (folder / "theirs" / "out.npz").string();
  fs::create_symlink(mine, link);
  expect_refusal({"margin", data, "-o", link}, 2, {"out.npz is a symbolic link"});
  expect_refusal({"generate", "-o", link}, 2, {"out.npz is a symbolic link"});
  // Beside a page of ours, a figure that is a link.
  const std::string run = (folder / "run").string(), page = (folder / "theirs" / "page.html").string();
  ASSERT_EQ(attmirror_command({"train", data, "--steps", "50", "--quiet", "-o", run}).code, 0);
  const Outcome written = attmirror_command({"report", run, "-o", page, "--json"});
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string side = StrangeJson::parse(written.out)["files"][1];
  fs::remove(side);
  fs::create_symlink(mine, side);
  expect_refusal({"report", run, "-o", page, "--overwrite"}, 2, {"is a symbolic link"});
  EXPECT_EQ(file_text(mine), "mine");
}

TEST(Strangers, AClosedTerminalLeavesACheckpoint) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string();
  std::signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
  RunningCommand training({"train", data, "--steps", "2000000000", "--normalized", "--quiet", "-o", run});
  ASSERT_TRUE(
      training.wait_until([&] { return training.catches(SIGHUP) && fs::exists(run + "/metrics.jsonl"); }));
  training.signal(SIGHUP);
  const Outcome outcome = training.wait();
  EXPECT_EQ(outcome.code, 128 + SIGHUP) << outcome.err;
  EXPECT_TRUE(fs::exists(run + "/checkpoint.npz"));
}

TEST(Strangers, VeryLongNamesFitIntoAReport) {
  const TemporaryFolder folder;
  const fs::path db = folder / "r.db", page = folder / "page.html";
  SweepHeader header = example_header();
  const std::string longest(3000, 'm');
  header.name = header.description = std::string(3000, 'n');
  header.metrics[0].name = "a" + longest;  // numbers; and two that differ only at the end
  header.metrics[2].name = "a" + longest + "2";
  {
    SweepDatabase database(db, SweepDatabase::Mode::create, header);
    std::vector<RunRow> rows = example_rows(0, 6);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].settings[1] = 1.0 + static_cast<double>(i);
      rows[i].metrics[0] = static_cast<double>(i * i);
      rows[i].metrics[2] = static_cast<std::int64_t>(i);
    }
    database.write(rows);
  }
  const Outcome outcome = attmirror_command({"report", db.string(), "-o", page.string(), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const StrangeJson json = StrangeJson::parse(outcome.out);
  EXPECT_EQ(json["figures"], 3);  // a curve, and the two metrics
  for (const std::string file : json["files"]) EXPECT_LE(fs::path(file).filename().string().size(), 255u);
  const std::string html = file_text(page);
  EXPECT_NE(html.find("…"), std::string::npos);
  EXPECT_EQ(html.find(std::string(200, 'm')), std::string::npos);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

// 64 MB of tokens in a box (n, T, d), as doubles or floats.
std::string large_data(const TemporaryFolder& folder, DType dtype, NpzCompression compression) {
  constexpr std::int64_t n = 1024, T = 64, d = 128;
  std::vector<double> numbers(n * T * d);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<double>((i * 2654435761u) % 1024) / 512 - 1;
  const std::vector<float> floats(numbers.begin(), numbers.end());
  std::vector<double> labels(n, 1.0);
  for (std::size_t i = 0; i < n; i += 2) labels[i] = -1;
  const std::span all(numbers);
  const std::string path = (folder / "large.npz").string();
  NamedArrays arrays{{"Z", Array({n, d}, all.subspan(5, n * d))},
                     {"Y", Array({n}, std::span<const double>(labels))},
                     {"v", Array({d}, all.subspan(77, d))}};
  arrays.emplace("X", dtype == DType::float64 ? Array({n, T, d}, all)
                                              : Array({n, T, d}, std::span<const float>(floats)));
  save_npz(path, arrays, {.compression = compression});
  return path;
}

TEST(LargeArrays, AreLookedAtInPieces) {
  if (sanitized) GTEST_SKIP() << "a sanitizer has its own idea of memory";
  constexpr long megabyte = 1024;
  const TemporaryFolder folder;
  const long usual = attmirror_command({"info", small_data(folder)}).peak_kib;
  for (const DType dtype : {DType::float64, DType::float32}) {
    const std::string data = large_data(folder, dtype, NpzCompression::stored);
    const Outcome info = attmirror_command({"info", data, "--json"});
    ASSERT_EQ(info.code, 0) << info.err;
    EXPECT_LT(info.peak_kib, usual + 8 * megabyte) << to_string(dtype);
    const std::string run = (folder / fmt::format("run-{}", to_string(dtype))).string();
    const Outcome train = attmirror_command({"train", data, "--steps", "1", "--quiet", "-o", run});
    ASSERT_EQ(train.code, 0) << train.err;
    EXPECT_LT(train.peak_kib, usual + 1.2 * 64 * megabyte) << to_string(dtype);
    EXPECT_EQ(StrangeJson::parse(file_text(run + "/config.json"))["data"]["fingerprint"],
              StrangeJson::parse(info.out)["fingerprint"]);
  }
}

// Zip64: an entry of more than 4 GiB, of zeros, which packs to a few megabytes. Half a minute, and 4.3 GB of memory.
TEST(LargeArrays, MayExceedFourGigabytesPacked) {
  if (std::getenv("ATTMIRROR_NIGHTLY") == nullptr)
    GTEST_SKIP() << "half a minute: ATTMIRROR_NIGHTLY=1 runs it";
  const TemporaryFolder folder;
  const std::string path = (folder / "huge.npz").string();
  constexpr std::int64_t rows = 68'000'000, d = 64;
  save_npz(path, {{"A", Array(DType::uint8, {rows, d}, std::vector<std::byte>(rows * d))}},
           {.compression = NpzCompression::deflated});
  const Outcome info = attmirror_command({"info", path, "--json"});
  ASSERT_EQ(info.code, 0) << info.err;
  EXPECT_EQ(StrangeJson::parse(info.out)["arrays"][0]["bytes"], rows * d);
  EXPECT_LT(info.peak_kib, 200 * 1024);
}

}  // namespace
}  // namespace attmirror::test
