// Files that were cut short or lost bits are refused with a sentence, or read as far as they make sense; never a crash.
#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include "sweep_rows.hpp"
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/export.hpp>

#include <fstream>
#include <random>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::example_header;
using test::example_rows;
using test::expect_bad_input;
using test::TemporaryFolder;
using Mode = SweepDatabase::Mode;

std::vector<std::byte> whole_file(std::int64_t runs) {
  const TemporaryFolder folder;
  SweepDatabase(folder / "r.db", Mode::create, example_header()).write(example_rows(0, runs));
  return read_file(folder / "r.db");
}

// Without the care of write_file_atomically(), which takes its time.
void put(const fs::path& path, std::span<const std::byte> content) {
  fs::remove(path.string() + "-wal");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
}

struct Verdict {
  bool refused = false, noticed = false;
};

// Everything that one can do with a file. Writing waits for the disk: a test of many cases does it in some.
enum class Use { read, read_and_write };
Verdict use_all_of(const fs::path& path, Use use = Use::read_and_write) {
  Verdict verdict;
  const auto attempt = [&](auto action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input) << error.what();
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      verdict.noticed = true;
      return false;
    }
    return true;
  };
  verdict.refused = !attempt([&] {
    const SweepDatabase database(path);
    attempt([&] {
      for (const RunRow& row : database.rows(SweepDatabase::Arrays::load)) {
        EXPECT_EQ(row.settings.size(), database.header().settings.size());
        EXPECT_EQ(row.metrics.size(), database.header().metrics.size());
      }
    });
    attempt([&] { database.finished_keys(); });
    attempt([&] { database.count(); });
    attempt([&] {
      for (const auto& [name, shapes] : database.array_shapes())
        database.for_each_array(name, [](const auto&) {});
    });
    attempt([&] { summarize(database); });
    if (!database.integrity().empty()) verdict.noticed = true;
  });
  if (use == Use::read) return verdict;
  attempt([&] {
    SweepDatabase database(path, Mode::resume, example_header());
    database.write(example_rows(40, 60));
  });
  return verdict;
}

TEST(SweepDatabaseDamage, AFileCutShortIsRefused) {
  const auto whole = whole_file(30);
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  std::vector<std::size_t> lengths{1, 15, 16, 50, 99, 100, 101, 511, 512, 4095, 4097};
  for (std::size_t length = 4096; length < whole.size(); length += 4096) lengths.push_back(length);
  for (std::size_t length = 997; length < whole.size(); length += 1499) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    SCOPED_TRACE(length);
    put(path, std::span(whole).first(length));
    EXPECT_TRUE(use_all_of(path).refused);
    EXPECT_EQ(fs::file_size(path), length);  // left as it is
    expect_bad_input({"r.db", "damaged"}, [&] { SweepDatabase(path, Mode::resume, example_header()); });
  }
  put(path, whole);
  const Verdict verdict = use_all_of(path);
  EXPECT_FALSE(verdict.refused);
  EXPECT_FALSE(verdict.noticed);
}

TEST(SweepDatabaseDamage, BitsThatFellAreNoticedOrHarmless) {
  const auto whole = whole_file(30);
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  std::mt19937 random(11);
  std::size_t noticed = 0, cases = 0;
  const auto with_damage = [&](std::size_t at, std::byte mask) {
    SCOPED_TRACE(fmt::format("byte {} ^ {}", at, std::to_integer<int>(mask)));
    auto damaged = whole;
    damaged[at] ^= mask;
    put(path, damaged);
    noticed += use_all_of(path, ++cases % 7 == 0 ? Use::read_and_write : Use::read).noticed ? 1 : 0;
  };
  for (std::size_t at = 0; at < 100; ++at) with_damage(at, std::byte{0xff});  // the header of SQLite
  for (std::size_t page = 0; page < whole.size(); page += 4096)               // the heads of all pages
    for (std::size_t at = page + (page == 0 ? 100 : 0), k = 0; k < 16; ++k)
      with_damage(at + k, std::byte(1u << (random() % 8)));
  for (int i = 0; i < 300; ++i) with_damage(random() % whole.size(), std::byte(1 + random() % 255));
  EXPECT_GT(noticed, cases / 10);
}

TEST(SweepDatabaseDamage, ZerosInThePlaceOfPagesAreNoticed) {
  const auto whole = whole_file(30);
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  for (std::size_t page = 0; page < whole.size(); page += 4096) {
    SCOPED_TRACE(page);
    auto damaged = whole;
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(page), 4096, std::byte{0});
    put(path, damaged);
    EXPECT_TRUE(use_all_of(path).noticed);
  }
}

TEST(SweepDatabaseDamage, ALogThatLostBitsEndsBeforeThem) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  for (std::int64_t i = 0; i < 4; ++i) database.write(example_rows(8 * i, 8 * i + 8));
  const auto log = read_file(folder / "r.db-wal");
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    auto damaged = log;
    const std::size_t at = random() % log.size();
    SCOPED_TRACE(at);
    damaged[at] ^= std::byte(1 + random() % 255);
    fs::copy_file(folder / "r.db", folder / "copy.db", fs::copy_options::overwrite_existing);
    put(folder / "copy.db-wal", damaged);
    const SweepDatabase copy(folder / "copy.db");
    const std::int64_t count = copy.count();
    EXPECT_EQ(count % 8, 0);
    EXPECT_EQ(copy.rows(SweepDatabase::Arrays::load), example_rows(0, count));
  }
}

}  // namespace
}  // namespace attmirror
