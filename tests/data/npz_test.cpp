// .npz files: what numpy wrote, what we write, damaged and hostile archives.
#include "base/atomic_file.hpp"
#include "data/any_array.hpp"
#include "support/files.hpp"
#include <attmirror/data/npz.hpp>

#include <cstring>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Bytes = std::vector<std::byte>;

// The arrays of make_fixtures.py.
NamedArrays numpy_arrays() {
  std::vector<double> numbers(24);
  for (int i = 0; i < 24; ++i) numbers[static_cast<std::size_t>(i)] = i / 8.0 - 1;
  const std::vector<float> singles(numbers.begin(), numbers.begin() + 12);
  return {{"X", Array(Shape{2, 3, 4}, numbers)},
          {"Y", Array(std::vector<std::int64_t>{0, 1})},
          {"mask", Array(DType::boolean, {2, 2}, {std::byte{0}, std::byte{1}, std::byte{0}, std::byte{1}})},
          {"W", Array(Shape{3, 4}, singles)},
          {"b", Array::scalar(-1.0)}};
}

NamedArrays parse_archive(const Bytes& file, const NpzLimits& limits = {}) {
  return parse_npz(file, "data.npz", limits);
}

// Positions of the records that start with this signature: "PK\1\2" for the directory, "PK\3\4" for entries.
std::vector<std::size_t> find_records(const Bytes& file, std::string_view signature) {
  const std::string text = test::to_text(file);
  std::vector<std::size_t> found;
  for (auto at = text.find(signature); at != std::string::npos; at = text.find(signature, at + 1))
    found.push_back(at);
  return found;
}

constexpr std::string_view directory = "PK\x01\x02", local = "PK\x03\x04";

// A field of a zip record: where it stands in the directory and in the local header (APPNOTE 4.3.7
// and 4.3.12).
struct Field {
  std::size_t in_directory, in_local, size;
};
constexpr Field flags{8, 6, 2}, method{10, 8, 2}, crc{16, 14, 4}, packed_size{20, 18, 4},
    unpacked_size{24, 22, 4}, name_start{46, 30, 1};

// Writes a field of entry `index` in both places.
Bytes patched(Bytes file, std::size_t index, const Field& field, std::uint32_t value) {
  std::memcpy(file.data() + find_records(file, directory).at(index) + field.in_directory, &value, field.size);
  std::memcpy(file.data() + find_records(file, local).at(index) + field.in_local, &value, field.size);
  return file;
}

Bytes simple_file(NpzCompression compression, std::size_t count = 1000) {
  return format_npz({{"a", Array(std::vector<double>(count))}, {"b", Array(std::vector<double>(count))}},
                    {.compression = compression});
}

TEST(Npz, ReadsWhatNumpyWrites) {
  EXPECT_EQ(load_npz(test::format_file("stored.npz")), numpy_arrays());
  EXPECT_EQ(load_npz(test::format_file("deflated.npz")), numpy_arrays());
  EXPECT_EQ(parse_archive(read_file(test::format_file("deflated.npz"))), numpy_arrays());
  EXPECT_TRUE(load_npz(test::format_file("nothing.npz")).empty());
}

TEST(Npz, ReadsStreamedZip64Archives) {
  EXPECT_EQ(load_npz(test::format_file("streamed.npz")), (NamedArrays{{"X", numpy_arrays().at("X")}}));
}

TEST(Npz, EveryArchiveComesBack) {
  EXPECT_TRUE(rc::check("round trip", [] {
    const NamedArrays arrays = test::any_named_arrays(test::npy_types);
    for (const auto compression : {NpzCompression::stored, NpzCompression::deflated}) {
      const Bytes file = format_npz(arrays, {.compression = compression});
      RC_ASSERT(parse_archive(file) == arrays);
      RC_ASSERT(format_npz(parse_archive(file), {.compression = compression}) == file);
    }
  }));
}

TEST(Npz, EqualContentGivesEqualBytesWithoutATime) {
  const Bytes file = format_npz(numpy_arrays());
  EXPECT_EQ(file, format_npz(numpy_arrays()));
  for (const auto at : find_records(file, directory)) {
    std::uint32_t time_and_date = 0;
    std::memcpy(&time_and_date, file.data() + at + 12, 4);
    EXPECT_EQ(time_and_date, 0x00210000u) << "expected 1980-01-01 00:00";
  }
}

TEST(Npz, SavesAndLoadsALargeArray) {
  const test::TemporaryFolder folder;
  std::vector<double> numbers(500'000);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const NamedArrays arrays = {{"X", Array(Shape{500, 1000}, numbers)}, {"empty", Array()}};
  for (const auto compression : {NpzCompression::stored, NpzCompression::deflated}) {
    save_npz(folder / "a.npz", arrays, {.compression = compression});
    EXPECT_EQ(load_npz(folder / "a.npz"), arrays);
    const auto size_on_disk = std::filesystem::file_size(folder / "a.npz");
    EXPECT_EQ(size_on_disk > 4'000'000, compression == NpzCompression::stored) << size_on_disk;
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.npz"});
}

TEST(Npz, ReadsLinksAndPipes) {
  const test::TemporaryFolder folder;
  save_npz(folder / "a.npz", numpy_arrays());
  std::filesystem::create_symlink("a.npz", folder / "link.npz");
  EXPECT_EQ(load_npz(folder / "link.npz"), numpy_arrays());
  const auto pipe = folder / "pipe.npz";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ::alarm(60);  // a side that waits for the other for ever ends the program instead
  std::jthread writer([&] { save_npz(pipe, numpy_arrays()); });
  EXPECT_EQ(load_npz(pipe), numpy_arrays());
  writer.join();
  ::alarm(0);
}

TEST(Npz, RefusesWhatIsNoArchive) {
  expect_bad_input({"data.npz", "'hell'", "zip archive"}, [] { parse_archive(test::to_bytes("hello")); });
  expect_bad_input({"data.npz", "''"}, [] { parse_archive({}); });
  expect_bad_input({"float64.npy", "'\\x93NUM'", "zip archive"},
                   [] { load_npz(test::format_file("float64.npy")); });
  expect_bad_input({"cannot read", "none.npz", "No such file"},
                   [] { load_npz(test::format_file("none.npz")); });
  expect_bad_input({"cannot read", "Is a directory"}, [] { load_npz(test::format_file(".")); });
}

TEST(Npz, RefusesEveryTruncation) {
  for (const char* file_name : {"stored.npz", "deflated.npz", "streamed.npz", "nothing.npz"}) {
    const Bytes whole = read_file(test::format_file(file_name));
    for (std::size_t length = 0; length < whole.size(); ++length)
      expect_bad_input({"data.npz"}, [&] {
        parse_archive({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
      });
  }
  const Bytes whole = simple_file(NpzCompression::stored);
  expect_bad_input({"data.npz is not a complete .npz file"}, [&] {
    parse_archive({whole.begin(), whole.end() - 100});
  });
}

TEST(Npz, RefusesDuplicateNames) {
  const Bytes file = patched(simple_file(NpzCompression::stored), 1, name_start, 'a');
  expect_bad_input({"data.npz", "'a'", "twice"}, [&] { parse_archive(file); });
}

TEST(Npz, RefusesEncryption) {
  const Bytes file = patched(simple_file(NpzCompression::stored), 1, flags, 1);
  expect_bad_input({"data.npz: entry 'b.npy' is encrypted"}, [&] { parse_archive(file); });
}

TEST(Npz, RefusesUnknownCompression) {
  expect_bad_input({"lzma.npz: entry 'X.npy' has compression method 14"},
                   [] { load_npz(test::format_file("lzma.npz")); });
  const Bytes file = patched(simple_file(NpzCompression::stored), 0, method, 12);
  expect_bad_input({"entry 'a.npy' has compression method 12"}, [&] { parse_archive(file); });
}

TEST(Npz, RefusesDamagedNumbers) {
  Bytes file = simple_file(NpzCompression::stored);
  file[find_records(file, local)[0] + 200] = std::byte{1};
  expect_bad_input({"data.npz: entry 'a': CRC error"}, [&] { parse_archive(file); });
  file = simple_file(NpzCompression::deflated);
  file = patched(file, 0, crc, 12345);
  expect_bad_input({"data.npz: entry 'a': CRC error"}, [&] { parse_archive(file); });
}

TEST(Npz, RefusesSizesThatCannotBe) {
  const Bytes deflated = simple_file(NpzCompression::deflated), stored = simple_file(NpzCompression::stored);
  expect_bad_input({"entry 'a.npy' claims to inflate", "4000000000", "1032"},
                   [&] { parse_archive(patched(deflated, 0, unpacked_size, 4'000'000'000)); });
  expect_bad_input({"entry 'a.npy' is stored, but claims 9000 bytes in 8128"},
                   [&] { parse_archive(patched(stored, 0, unpacked_size, 9'000)); });
  // Entries that share one block of data: together they are larger than the file.
  expect_bad_input({"data.npz"}, [&] {
    parse_archive(patched(patched(stored, 1, packed_size, 16'000), 1, unpacked_size, 16'000));
  });
}

TEST(Npz, StopsAtTheDeclaredSize) {
  const Bytes file = simple_file(NpzCompression::deflated);
  expect_bad_input({"data.npz: entry 'a'"}, [&] { parse_archive(patched(file, 0, unpacked_size, 8'127)); });
  expect_bad_input({"data.npz: entry 'a'"}, [&] { parse_archive(patched(file, 0, unpacked_size, 8'129)); });
}

TEST(Npz, KeepsWithinTheLimits) {
  const Bytes file = simple_file(NpzCompression::deflated);
  EXPECT_EQ(parse_archive(file, {.max_bytes = 2 * 8'128}).size(), 2u);
  expect_bad_input({"entry 'b.npy' has 8128 bytes", "limit of 16255 bytes"},
                   [&] { parse_archive(file, {.max_bytes = 2 * 8'128 - 1}); });
  expect_bad_input({"max_bytes is 0"}, [&] { parse_archive(file, {.max_bytes = 0}); });
}

TEST(Npz, RefusesEntriesThatAreNoArrays) {
  expect_bad_input({"text_inside.npz: entry 'note.txt'", "'hello'", "NUMPY"},
                   [] { load_npz(test::format_file("text_inside.npz")); });
}

TEST(Npz, RefusesToWriteWhatTheFormatLacks) {
  expect_bad_input({"array", "bfloat16"}, [] { format_npz({{"a", Array(DType::bfloat16, {1}, Bytes(2))}}); });
}

TEST(Npz, AnyDamagedByteIsRefusedOrHarmless) {
  // Most flips must be refused; a flip in a date or an attribute changes nothing that is read.
  const Bytes whole = read_file(test::format_file("deflated.npz"));
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes file = whole;
    file[at] ^= std::byte{0x10};
    try {
      NamedArrays arrays = parse_archive(file);
      EXPECT_EQ(arrays.size(), 5u);
      for (const auto& [key, array] : numpy_arrays())
        EXPECT_TRUE(!arrays.contains(key) || arrays.at(key) == array) << "byte " << at;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, whole.size() / 2);
}

TEST(Npz, NamesMayHoldAnythingButNul) {
  const NamedArrays odd = {{"", Array()}, {"a/b", Array()}, {"c.npy", Array()}, {"\xc3\xa9", Array()}};
  EXPECT_EQ(parse_archive(format_npz(odd)), odd);
  expect_bad_input({"'a\\x00b'", "NUL"}, [] { format_npz({{std::string("a\0b", 3), Array()}}); });
  expect_bad_input({"'\\xff'"}, [] { format_npz({{"\xff", Array()}}); });
}

}  // namespace
}  // namespace attmirror
