// safetensors files: what the format's own library wrote, what we write, and every refusal.
#include "base/atomic_file.hpp"
#include "data/any_array.hpp"
#include "support/files.hpp"
#include <attmirror/data/safetensors.hpp>

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Bytes = std::vector<std::byte>;

std::string length_field(std::uint64_t length) {
  return {reinterpret_cast<const char*>(&length), sizeof length};
}

Bytes file_of(const std::string& header, std::size_t data_size) {
  return test::to_bytes(length_field(header.size()) + header + std::string(data_size, '\0'));
}

Safetensors parse_tensors(const Bytes& file) { return parse_safetensors(file, "model.safetensors"); }

TEST(Safetensors, ReadsWhatTheLibraryOfTheFormatWrites) {
  const Safetensors content = load_safetensors(test::format_file("numpy.safetensors"));
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{{"format", "np"}}));
  ASSERT_EQ(content.tensors.size(), 5u);
  std::vector<double> numbers(24);
  for (int i = 0; i < 24; ++i) numbers[static_cast<std::size_t>(i)] = i / 8.0 - 1;
  EXPECT_EQ(content.tensors.at("X"), Array(Shape{2, 3, 4}, numbers));
  EXPECT_EQ(content.tensors.at("Y"), Array(std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(content.tensors.at("b"), Array::scalar(-1.0));
  EXPECT_EQ(content.tensors.at("W").describe(), "float32 (3, 4)");
  EXPECT_EQ(content.tensors.at("mask").to_int64(), (std::vector<std::int64_t>{0, 1, 0, 1}));
}

TEST(Safetensors, EveryContentComesBack) {
  EXPECT_TRUE(rc::check("round trip", [] {
    const Safetensors content{test::any_named_arrays(test::all_types()),
                              {{*rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)), "value"}}};
    const Bytes file = format_safetensors(content);
    RC_ASSERT(parse_tensors(file) == content);
    RC_ASSERT(format_safetensors(parse_tensors(file)) == file);
  }));
}

TEST(Safetensors, AlignsTheDataAndEachArray) {
  const Safetensors content{{{"a", Array(DType::int8, {3}, Bytes(3))},
                             {"b", Array(std::vector<double>{1, 2})},
                             {"c", Array(std::vector<float>{3})}},
                            {}};
  const std::string text = test::to_text(format_safetensors(content));
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string header = text.substr(8, length);
  EXPECT_TRUE(header.starts_with(
      "{\"a\":{\"data_offsets\":[20,23],\"dtype\":\"I8\",\"shape\":[3]},\"b\":{\"data_offsets\":[0,16],"
      "\"dtype\":\"F64\",\"shape\":[2]},\"c\":{\"data_offsets\":[16,20],\"dtype\":\"F32\",\"shape\":[1]}}"))
      << header;
  EXPECT_EQ(text.size(), 8 + length + 23);
}

TEST(Safetensors, SavesAndLoads) {
  const test::TemporaryFolder folder;
  std::vector<float> numbers(200'000);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Safetensors content{{{"layer.0.weight", Array(Shape{400, 500}, numbers)}, {"empty", Array()}},
                            {{"format", "pt"}, {"note", "p = 1.1"}}};
  save_safetensors(folder / "model.safetensors", content);
  EXPECT_EQ(load_safetensors(folder / "model.safetensors"), content);
  save_safetensors(folder / "model.safetensors", {});
  EXPECT_EQ(load_safetensors(folder / "model.safetensors"), Safetensors{});
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(Safetensors, RefusesEveryTruncationAndAnyTail) {
  Bytes whole = read_file(test::format_file("numpy.safetensors"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_bad_input({"model.safetensors"}, [&] {
      parse_tensors({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    });
  whole.push_back({});
  expect_bad_input({"tensors end at 268, but 269 bytes"}, [&] { parse_tensors(whole); });
}

TEST(Safetensors, RefusesImpossibleHeaderLengths) {
  expect_bad_input({"model.safetensors: 7 bytes"}, [] { parse_tensors(Bytes(7)); });
  expect_bad_input({"header length is 100, but only 2 bytes follow"},
                   [] { parse_tensors(test::to_bytes(length_field(100) + "{}")); });
  expect_bad_input({"header length is 100000001", "at most 100000000"},
                   [] { parse_tensors(test::to_bytes(length_field(100'000'001) + "{}")); });
  expect_bad_input({"header length is 18446744073709551615"},
                   [] { parse_tensors(test::to_bytes(length_field(UINT64_MAX) + "{}")); });
  expect_bad_input({"starts with ''"}, [] { parse_tensors(Bytes(8)); });
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, RefusesBadHeaders) {
  const std::string good = tensor(R"("F32")", "[2]", "[0,8]");
  ASSERT_EQ(parse_tensors(file_of("{\"a\":" + good + "}   ", 8)).tensors.at("a"),
            Array(std::vector<float>{0, 0}));
  const struct {
    std::string header;
    std::string_view word;
  } cases[] = {
      {"[]", "starts with '['"},
      {" {}", "starts with ' '"},
      {"{\"a\":", "not JSON: fault at byte"},
      {"{} x", "not JSON"},
      {"{\"\xff\":1}", "not JSON"},
      {"{\"a\":" + good + ",\"a\":" + good + "}", "the name 'a' twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "the name 'dtype' twice"},
      {"{\"a\":1}", "tensor 'a' is not described by an object"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "tensor 'a' lacks the key 'data_offsets'"},
      {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "lacks the key 'shape'"},
      {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "lacks the key 'dtype'"},
      {"{\"a\":{\"more\":1}}", "has the key 'more'"},
      {"{\"a\":" + tensor("7", "[2]", "[0,8]") + "}", "dtype is not a string"},
      {"{\"a\":" + tensor("\"F8_E4M3\"", "[2]", "[0,8]") + "}", "dtype is 'F8_E4M3'"},
      {"{\"a\":" + tensor("\"f32\"", "[2]", "[0,8]") + "}", "dtype is 'f32'"},
      {"{\"a\":" + tensor("\"F32\"", "2", "[0,8]") + "}", "shape is not an array"},
      {"{\"a\":" + tensor("\"F32\"", "[-2]", "[0,8]") + "}", "shape[0] is '-2'"},
      {"{\"a\":" + tensor("\"F32\"", "[2.0]", "[0,8]") + "}", "shape[0] is '2.0'"},
      {"{\"a\":" + tensor("\"F32\"", "[\"2\"]", "[0,8]") + "}", "shape[0] is '\"2\"'"},
      {"{\"a\":" + tensor("\"F32\"", "[1,9223372036854775808]", "[0,8]") + "}",
       "shape[1] is '9223372036854775808'"},
      {"{\"a\":" + tensor("\"F32\"", "[99999999999999999999999]", "[0,8]") + "}",
       "shape[0] is '9.999999999999999e+22'"},
      {"{\"a\":" + tensor("\"F32\"", "[4294967296,4294967296]", "[0,8]") + "}", "exceeds the address space"},
      {"{\"a\":" + tensor("\"F32\"", "[[[[2]]]]", "[0,8]") + "}", "nests deeper"},
      {"{\"a\":" + tensor("\"F32\"", "[2]", "8") + "}", "data_offsets is not a pair"},
      {"{\"a\":" + tensor("\"F32\"", "[2]", "[0,4,8]") + "}", "data_offsets is not a pair"},
      {"{\"a\":" + tensor("\"F32\"", "[2]", "[0,9]") + "}",
       "ends at byte 9 of the data, and the file has 8: it is cut off or damaged"},
      {"{\"a\":" + tensor("\"F32\"", "[2]", "[-8,0]") + "}", "data_offsets[0] is '-8'"},
      {"{\"a\":" + tensor("\"F32\"", "[2]", "[8,0]") + "}", "data_offsets is [8, 0]"},
      {"{\"a\":" + tensor("\"F32\"", "[1]", "[0,8]") + "}",
       "[0, 8] hold 8 bytes: expected 4 for float32 (1,)"},
      {"{\"a\":" + tensor("\"F32\"", "[1]", "[4,8]") + "}", "'a' begins at 4: expected 0"},
      {"{\"a\":" + tensor("\"U8\"", "[5]", "[0,5]") + ",\"b\":" + tensor("\"U8\"", "[5]", "[3,8]") + "}",
       "'b' begins at 3: expected 5, where the one before ends (they overlap)"},
      {"{\"a\":" + tensor("\"U8\"", "[3]", "[0,3]") + ",\"b\":" + tensor("\"U8\"", "[3]", "[5,8]") + "}",
       "'b' begins at 5: expected 3, where the one before ends (there is a hole)"},
      {"{\"a\":" + good + ",\"b\":" + good + "}", "they overlap"},
      {"{\"a\":" + tensor("\"U8\"", "[3]", "[0,3]") + "}", "tensors end at 3, but 8 bytes"},
      {"{}", "tensors end at 0, but 8 bytes"},
      {"{\"__metadata__\":1}", "__metadata__ is not an object"},
      {"{\"__metadata__\":{\"a\":1}}", "__metadata__ 'a' is not a string"},
  };
  for (const auto& [header, word] : cases)
    expect_bad_input({"model.safetensors", word}, [&, text = header] { parse_tensors(file_of(text, 8)); });
}

TEST(Safetensors, RefusesBooleansThatAreNone) {
  Bytes file = file_of("{\"a\":" + tensor("\"BOOL\"", "[2]", "[0,2]") + "}", 2);
  file.back() = std::byte{3};
  expect_bad_input({"model.safetensors: tensor 'a'[1] is the byte 3"}, [&] { parse_tensors(file); });
}

TEST(Safetensors, RefusesDeepNestingWithoutRecursion) {
  std::string header = "{\"a\":" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  expect_bad_input({"nests deeper"}, [&] { parse_tensors(file_of(header, 0)); });
}

TEST(Safetensors, RefusesToWriteWhatTheFormatLacks) {
  expect_bad_input({"__metadata__"}, [] { format_safetensors({{{"__metadata__", Array()}}, {}}); });
  expect_bad_input({"UTF-8"}, [] { format_safetensors({{{"\xff", Array()}}, {}}); });
  expect_bad_input({"UTF-8"}, [] { format_safetensors({{}, {{"key", "\xc3"}}}); });
}

TEST(Safetensors, NamesTheFileThatIsMissing) {
  expect_bad_input({"cannot read", "none.safetensors", "No such file"},
                   [] { load_safetensors(test::format_file("none.safetensors")); });
}

}  // namespace
}  // namespace attmirror
