#include "base/atomic_file.hpp"
#include "data/npy.hpp"
#include "support/files.hpp"
#include "sweep_rows.hpp"
#include <attmirror/sweep/export.hpp>

#include <cmath>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <zip.h>

namespace attmirror {
namespace {

using test::example_header;
using test::example_row;
using test::example_rows;
using test::expect_bad_input;
using test::TemporaryFolder;
using Mode = SweepDatabase::Mode;
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ExportCsv, WritesOneLinePerRun) {
  const TemporaryFolder folder;
  auto rows = example_rows(0, 3);
  rows[0].settings = {std::int64_t{-7}, 0.1, std::string("say \"md\", please")};
  rows[0].metrics = {-infinity, std::string(), Cell{}};
  rows[1].status = "diverged";
  rows[1].reason = "line one\nline two";
  rows[1].metrics = {5e-324, std::string(" 1"), std::numeric_limits<std::int64_t>::max()};
  rows[2].metrics = {1.0 / 3, std::string("ℓ"), std::int64_t{0}};
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(rows);
  export_csv(database, folder / "r.csv");
  const std::string tail = ",0.25,lanes:8,avx2,0.1.0,abc,2026-01-31T12:34:56Z\r\n";
  EXPECT_EQ(read_text_file(folder / "r.csv"),
            "run,key,seed,p,optimizer,status,reason,loss,selected,rank,seconds,engine,isa,version,commit,"
            "finished\r\n"
            "0," +
                test::key_of(0) + ",-7,0.1,\"say \"\"md\"\", please\",ok,,-inf,," + tail + "1," +
                test::key_of(1) +
                ",1,2,md,diverged,\"line one\nline two\",5e-324,\" 1\",9223372036854775807" + tail + "2," +
                test::key_of(2) + ",2,1.75,md,ok,,0.3333333333333333,ℓ,0" + tail);
}

TEST(ExportCsv, IsLongAndAtomic) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(example_rows(0, 3000));
  export_csv(database, folder / "r.csv");
  const std::string text = read_text_file(folder / "r.csv");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3001);
  EXPECT_NE(text.find("\r\n2999,"), std::string::npos);
  test::expect_error(ErrorKind::environment, {"cannot write", "none/r.csv"},
                     [&] { export_csv(database, folder / "none/r.csv"); });
  EXPECT_EQ(folder.names().size(), 4u);  // the database with its log, and one file
}

// The .npy files of an archive.
std::map<std::string, std::vector<std::byte>> entries_of(const std::filesystem::path& path) {
  std::map<std::string, std::vector<std::byte>> entries;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, nullptr);
  EXPECT_NE(archive, nullptr);
  if (!archive) return entries;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    zip_stat_t status;
    zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &status);
    std::vector<std::byte> bytes(status.size);
    zip_file_t* file = zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0);
    EXPECT_EQ(zip_fread(file, bytes.data(), bytes.size()), static_cast<zip_int64_t>(bytes.size()));
    zip_fclose(file);
    entries.emplace(status.name, std::move(bytes));
  }
  zip_discard(archive);
  return entries;
}

// The texts of an array of strings in UCS-4.
std::vector<std::u32string> texts_of(const std::vector<std::byte>& npy, std::size_t width) {
  const std::string text = test::to_text(npy);
  const std::size_t begin = text.find('\n') + 1;
  EXPECT_NE(text.find(fmt::format("'descr': '<U{}'", width)), std::string::npos) << text.substr(0, begin);
  std::vector<std::u32string> result;
  for (std::size_t at = begin; at < npy.size(); at += 4 * width) {
    std::u32string item(width, U'\0');
    std::memcpy(item.data(), npy.data() + at, 4 * width);
    result.push_back(item.substr(0, item.find(U'\0')));
  }
  return result;
}

// Equal, where a NaN equals itself.
void expect_same(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << i << ": " << found[i];
}

TEST(ExportNpz, HasAnArrayPerColumnAndStacksTheArrays) {
  const TemporaryFolder folder;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto rows = example_rows(0, 4);
  rows[0].metrics = {nan, std::string("a"), std::int64_t{4}};
  rows[1].metrics = {-infinity, std::string("ℓ😀‖"), Cell{}};
  rows[2].metrics = {0.1, Cell{}, std::int64_t{6}};
  rows[2].reason = "bad \xff byte";
  rows[1].arrays = {
      {"step", {2}, {0, 10}}, {"loss", {2}, {7, 8}}, {"W", {1, 3}, {1, 2, 3}}};  // shorter, and wider
  rows[3].arrays.clear();
  rows[0].arrays.push_back({"p", {2}, {0.5, -0.5}});
  rows[0].arrays.push_back({"scale", {}, {42}});
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(rows);
  export_npz(database, folder / "r.npz");
  const auto entries = entries_of(folder / "r.npz");
  const auto numbers = [&](const std::string& name) { return parse_npy(entries.at(name + ".npy"), name); };

  EXPECT_EQ(numbers("run").describe(), "int64 (4,)");
  EXPECT_EQ(numbers("run").to_int64(), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(numbers("seed").to_int64(), (std::vector<std::int64_t>{1, 1, 2, 2}));
  EXPECT_EQ(numbers("p").to_doubles(), (std::vector<double>{1.75, 2, 1.75, 2}));
  EXPECT_EQ(numbers("rank").describe(), "float64 (4,)");
  expect_same(numbers("rank").to_doubles(), {4, nan, 6, 3});
  expect_same(numbers("loss").to_doubles(), {nan, -infinity, 0.1, 0.25});
  EXPECT_EQ(texts_of(entries.at("selected.npy"), 5),
            (std::vector<std::u32string>{U"a", U"ℓ😀‖", U"", U"0,1,2"}));
  EXPECT_EQ(texts_of(entries.at("status.npy"), 2), (std::vector<std::u32string>(4, U"ok")));
  EXPECT_EQ(texts_of(entries.at("reason.npy"), 10)[2], U"bad \ufffd byte");
  EXPECT_FALSE(entries.contains("config.npy"));

  EXPECT_EQ(to_string(numbers("curve.step").shape()), "(4, 3)");
  expect_same(numbers("curve.step").to_doubles(), {0, 10, 100, 0, 10, nan, 0, 10, 100, nan, nan, nan});
  expect_same(numbers("curve.loss").to_doubles(), {0, 0, 0, 7, 8, nan, 2, 1, 0.5, nan, nan, nan});
  EXPECT_EQ(to_string(numbers("array.W").shape()), "(4, 2, 3)");
  expect_same(numbers("array.W").to_doubles(), {0, 1, nan, 2, -0.0, nan, 1,   2,   3,   nan, nan, nan,
                                                2, 1, nan, 2, -0.0, nan, nan, nan, nan, nan, nan, nan});
  EXPECT_EQ(to_string(numbers("array.p").shape()), "(4, 2)");  // a prompt, beside the setting p
  expect_same(numbers("array.scale").to_doubles(), {42, nan, nan, nan});
}

TEST(ExportNpz, OfNoRunsHasEmptyColumns) {
  const TemporaryFolder folder;
  const SweepDatabase database(folder / "r.db", Mode::create, example_header());
  export_npz(database, folder / "r.npz");
  const auto entries = entries_of(folder / "r.npz");
  EXPECT_EQ(parse_npy(entries.at("loss.npy"), "loss").describe(), "float64 (0,)");
  EXPECT_TRUE(texts_of(entries.at("status.npy"), 1).empty());
}

TEST(ExportNpz, SaysWhatCannotBeDone) {
  const TemporaryFolder folder;
  auto rows = example_rows(0, 2);
  SweepHeader header = example_header();
  header.metrics[0].name = "curve.loss";
  {
    SweepDatabase database(folder / "a.db", Mode::create, header);
    database.write(rows);
    expect_bad_input({"a.npz", "curve.loss", "exists"}, [&] { export_npz(database, folder / "a.npz"); });
  }
  {
    SweepDatabase database(folder / "c.db", Mode::create, example_header());
    expect_bad_input({"/dev/null", "regular file"}, [&] { export_npz(database, "/dev/null"); });
  }
  rows[1].arrays[1] = {"loss", {1, 3}, {1, 2, 3}};
  SweepDatabase database(folder / "b.db", Mode::create, example_header());
  database.write(rows);
  expect_bad_input({"array \"loss\"", "1 axes", "2"}, [&] { export_npz(database, folder / "b.npz"); });
  for (const auto& name : folder.names()) EXPECT_EQ(name.find("npz"), std::string::npos) << name;
}

TEST(ExportNpz, RefusesNamesThatLeadOutOfTheArchive) {
  for (const std::string name : {"../../evil", "/etc/evil", "a/../b", "a\\b", "a\x1b[31m", "a//b"}) {
    const TemporaryFolder folder;
    SweepHeader header = example_header();
    header.metrics[0].name = name;
    SweepDatabase database(folder / "r.db", Mode::create, header);
    database.write(example_rows(0, 2));
    const std::string said = test::refusal([&] { export_npz(database, folder / "r.npz"); });
    EXPECT_NE(said.find("cannot be the name of a file in an .npz archive"), std::string::npos) << said;
    EXPECT_FALSE(std::filesystem::exists(folder / "r.npz"));
  }
}

TEST(Exports, DoNotGoThroughLinks) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  database.write(example_rows(0, 2));
  write_file_atomically(folder / "mine", "mine");
  std::filesystem::create_symlink(folder / "mine", folder / "out");
  expect_bad_input({"out is a symbolic link"}, [&] { export_csv(database, folder / "out"); });
  expect_bad_input({"out is a symbolic link"}, [&] { export_npz(database, folder / "out"); });
  EXPECT_EQ(read_text_file(folder / "mine"), "mine");
}

}  // namespace
}  // namespace attmirror
