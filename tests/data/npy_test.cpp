// .npy files: what numpy wrote, what we write, and every refusal.
#include "data/npy.hpp"

#include "base/atomic_file.hpp"
#include "data/any_array.hpp"
#include "support/files.hpp"

#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

// A version 1.0 file with this dict and this many bytes of data, each 0.
std::vector<std::byte> npy_file(const std::string& dict, std::size_t data_size) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dict.size() & 255);
  text += static_cast<char>(dict.size() >> 8);
  return test::to_bytes(text + dict + std::string(data_size, '\0'));
}

std::string dict_of(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

Array parse_array_file(const std::vector<std::byte>& file) { return parse_npy(file, "W.npy"); }

TEST(Npy, ReadsEveryTypeThatNumpyWrites) {
  const std::pair<std::string_view, DType> files[] = {
      {"float64", DType::float64}, {"float32", DType::float32}, {"float16", DType::float16},
      {"int64", DType::int64},     {"int32", DType::int32},     {"int16", DType::int16},
      {"int8", DType::int8},       {"uint64", DType::uint64},   {"uint32", DType::uint32},
      {"uint16", DType::uint16},   {"uint8", DType::uint8},     {"bool", DType::boolean}};
  for (const auto& [name, dtype] : files) {
    const Array array = load_npy(test::format_file(std::string(name) + ".npy"));
    EXPECT_EQ(array.dtype(), dtype) << name;
    EXPECT_EQ(array.shape(), (Shape{2, 3})) << name;
    std::vector<double> expected = {0, 1, 2, 3, 4, 5};
    if (name.starts_with("float")) expected = {-1, -0.875, -0.75, -0.625, -0.5, -0.375};
    if (name == "bool") expected = {0, 1, 0, 1, 0, 1};
    EXPECT_EQ(array.to_doubles(), expected) << name;
    EXPECT_EQ(format_npy(array), read_file(test::format_file(std::string(name) + ".npy")))
        << "not the bytes of numpy: " << name;
  }
}

TEST(Npy, ReadsFortranOrderScalarsEmptyArraysAndAllVersions) {
  std::vector<double> numbers(24);
  for (int i = 0; i < 24; ++i) numbers[static_cast<std::size_t>(i)] = i / 8.0 - 1;
  EXPECT_EQ(load_npy(test::format_file("fortran.npy")), Array(Shape{2, 3, 4}, numbers));
  EXPECT_EQ(load_npy(test::format_file("scalar.npy")), Array::scalar(-1.0));
  EXPECT_EQ(load_npy(test::format_file("empty.npy")), Array(Shape{0, 5}, std::vector<float>{}));
  EXPECT_EQ(load_npy(test::format_file("version2.npy")), Array(std::vector<double>{-1, -0.875, -0.75}));
  EXPECT_EQ(load_npy(test::format_file("version3.npy")), Array(std::vector<double>{-1, -0.875, -0.75}));
}

TEST(Npy, WritesFortranOrderAsNumpyDoes) {
  EXPECT_EQ(format_npy(load_npy(test::format_file("fortran.npy")), {.order = MemoryOrder::fortran}),
            read_file(test::format_file("fortran.npy")));
}

TEST(Npy, EveryArrayComesBackInBothOrders) {
  EXPECT_TRUE(rc::check("round trip", [] {
    const Array array = test::any_array(test::npy_types);
    RC_ASSERT(parse_array_file(format_npy(array)) == array);
    RC_ASSERT(parse_array_file(format_npy(array, {.order = MemoryOrder::fortran})) == array);
    RC_ASSERT(format_npy(array).size() % 64 == array.bytes().size() % 64);
  }));
}

TEST(Npy, SavesAndLoadsALargeArray) {
  const test::TemporaryFolder folder;
  std::vector<double> numbers(300 * 400);
  std::iota(numbers.begin(), numbers.end(), -0.5);
  const Array array(Shape{300, 400}, numbers);
  for (const MemoryOrder order : {MemoryOrder::c, MemoryOrder::fortran}) {
    save_npy(folder / "a.npy", array, {.order = order});
    EXPECT_EQ(load_npy(folder / "a.npy"), array);
  }
}

TEST(Npy, AcceptsAllSpellingsOfThisByteOrderAndOfTheDict) {
  const Array expected(std::vector<double>{0, 0});
  for (const char* descr : {"'<f8'", "'=f8'", "'|f8'", "\"<f8\""})
    EXPECT_EQ(parse_array_file(npy_file(dict_of(descr, "(2,)"), 16)), expected) << descr;
  EXPECT_EQ(parse_array_file(npy_file("{'shape':(2,),'fortran_order':True,'descr':'<f8'}", 16)), expected);
  EXPECT_EQ(parse_array_file(
                npy_file(" {\t'shape' : ( 2 , ) , 'fortran_order' : False , 'descr' : '<f8' } \n", 16)),
            expected);
  EXPECT_EQ(parse_array_file(npy_file(dict_of("'<f8'", "(1, 2,)"), 16)).shape(), (Shape{1, 2}));
  EXPECT_EQ(parse_array_file(npy_file(dict_of("'<f8'", "(9, 0)"), 0)).shape(), (Shape{9, 0}));
}

TEST(Npy, RefusesTypesThatAreNoNumbersOfThisMachine) {
  expect_bad_input({"big_endian.npy", "'>f8'", "big-endian"},
                   [] { load_npy(test::format_file("big_endian.npy")); });
  expect_bad_input({"object.npy", "'|O'", "objects"}, [] { load_npy(test::format_file("object.npy")); });
  expect_bad_input({"structured.npy", "structured"}, [] { load_npy(test::format_file("structured.npy")); });
  expect_bad_input({"complex.npy", "'<c16'"}, [] { load_npy(test::format_file("complex.npy")); });
  expect_bad_input({"text.npy", "'<U2'"}, [] { load_npy(test::format_file("text.npy")); });
  for (const char* descr : {"''", "'f8'", "'<f'", "'<f16'", "'<f80'", "'<i3'", "'<b2'", "'O'", "'<M8[ns]'"})
    expect_bad_input({"W.npy: descr is", descr},
                     [&] { parse_array_file(npy_file(dict_of(descr, "(2,)"), 16)); });
}

TEST(Npy, RefusesBadMagicAndVersions) {
  expect_bad_input({"W.npy", "'hello '", "NUMPY"}, [] { parse_array_file(test::to_bytes("hello world")); });
  expect_bad_input({"W.npy", "''"}, [] { parse_array_file({}); });
  for (const std::string& version :
       {std::string("\x00\x00", 2), std::string("\x04\x00", 2), std::string("\x01\x01", 2)})
    expect_bad_input({"version is " + std::to_string(version[0]) + "." + std::to_string(version[1])}, [&] {
      parse_array_file(test::to_bytes("\x93NUMPY" + version + std::string(100, ' ')));
    });
}

TEST(Npy, RefusesHeadersThatAreCutShortOrTooLong) {
  const auto whole = format_npy(Array(std::vector<double>{1, 2, 3}));
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_bad_input({"W.npy"}, [&] {
      parse_array_file({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    });
  expect_bad_input({"header length is 118", "only 20 bytes follow"}, [&] {
    parse_array_file({whole.begin(), whole.begin() + 30});
  });
  expect_bad_input({"ends after 9 bytes"}, [&] { parse_array_file({whole.begin(), whole.begin() + 9}); });
  std::string text("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  expect_bad_input({"header length is 4294967295", "at most 65536"},
                   [&] { parse_array_file(test::to_bytes(text)); });
}

TEST(Npy, RefusesImpossibleShapes) {
  const auto with_shape = [](const std::string& shape) { return npy_file(dict_of("'<f8'", shape), 16); };
  expect_bad_input({"W.npy: shape[1] is '-1'"}, [&] { parse_array_file(with_shape("(2, -1)")); });
  expect_bad_input({"shape[0] is '9223372036854775808'"},
                   [&] { parse_array_file(with_shape("(9223372036854775808,)")); });
  expect_bad_input({"shape[0] is '99999999999999999999999'"},
                   [&] { parse_array_file(with_shape("(99999999999999999999999,)")); });
  expect_bad_input({"exceeds the address space"},
                   [&] { parse_array_file(with_shape("(4294967296, 4294967296)")); });
  expect_bad_input({"exceeds the address space"},
                   [&] { parse_array_file(with_shape("(9223372036854775807,)")); });
  expect_bad_input({"shape is a number"}, [&] { parse_array_file(with_shape("(2)")); });
  std::string axes = "(";
  for (int i = 0; i < 33; ++i) axes += "1, ";
  expect_bad_input({"33 axes"}, [&] { parse_array_file(npy_file(dict_of("'<f8'", axes + ")"), 8)); });
}

TEST(Npy, RefusesDataThatIsShorterOrLongerThanTheShape) {
  for (const std::size_t size : {0, 23, 25, 32})
    expect_bad_input({"W.npy", std::to_string(size) + " bytes follow", "expected 24", "float64 (3,)"},
                     [&] { parse_array_file(npy_file(dict_of("'<f8'", "(3,)"), size)); });
  // A tiny file that asks for a terabyte is refused before anything is allocated.
  expect_bad_input({"expected 1099511627776"},
                   [] { parse_array_file(npy_file(dict_of("'|u1'", "(1099511627776,)"), 1)); });
}

TEST(Npy, RefusesEverythingThatIsNotTheDict) {
  const struct {
    const char* dict;
    std::string_view word;
  } cases[] = {
      {"", "expected '{'"},
      {"{}", "lacks the key 'descr'"},
      {"{'descr': '<f8', 'shape': (2,)}", "lacks the key 'fortran_order'"},
      {"{'descr': '<f8', 'fortran_order': False}", "lacks the key 'shape'"},
      {"{'descr': '<f8', 'descr': '<f8'}", "'descr' twice"},
      {"{'shape': (2,), 'shape': (2,)}", "'shape' twice"},
      {"{'fortran_order': True, 'fortran_order': True}", "'fortran_order' twice"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1}", "key 'x'"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)", "is its end: expected ','"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,)} x", "'x': expected the end"},
      {"{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}", "True or False"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': [2,]}", "expected '('"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2.0,)}", "expected ','"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (,)}", "a whole number"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (-,)}", "a whole number"},
      {"{'descr': __import__('os')}", "expected a string"},
      {"{'descr': '<f8}", "a string that ends"},
      {"{descr: '<f8'}", "expected a string"},
      {"{'descr' '<f8'}", "expected ':'"},
      {"{'descr': '<f8' 'fortran_order': False}", "expected ','"},
      {"{, }", "expected a string"},
  };
  for (const auto& [dict, word] : cases)
    expect_bad_input({"W.npy", word}, [&, text = dict] { parse_array_file(npy_file(text, 16)); });
}

TEST(Npy, RefusesToWriteWhatTheFormatLacks) {
  expect_bad_input({"bfloat16 (1,)"},
                   [] { format_npy(Array(DType::bfloat16, {1}, std::vector<std::byte>(2))); });
}

TEST(Npy, NamesTheFileThatIsMissing) {
  expect_bad_input({"cannot read", "none.npy", "No such file"},
                   [] { load_npy(test::format_file("none.npy")); });
  expect_bad_input({"cannot read", "formats", "Is a directory"}, [] { load_npy(test::format_file(".")); });
}

}  // namespace
}  // namespace attmirror
