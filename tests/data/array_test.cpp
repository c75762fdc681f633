// Arrays: shapes, exact conversions, and their refusals.
#include "support/files.hpp"
#include <attmirror/data/array.hpp>

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

template <class T>
Array array_of(DType dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return Array(dtype, {static_cast<std::int64_t>(values.size())}, {bytes.begin(), bytes.end()});
}

TEST(Array, DescribesItself) {
  EXPECT_EQ(Array(Shape{6, 8, 10}, std::vector<double>(480)).describe(), "float64 (6, 8, 10)");
  EXPECT_EQ(Array(std::vector<float>(7)).describe(), "float32 (7,)");
  EXPECT_EQ(Array::scalar(std::int64_t{3}).describe(), "int64 ()");
  EXPECT_EQ(Array().describe(), "float64 (0,)");
  EXPECT_EQ(Array(Shape{1, 2}, std::vector<std::int32_t>(2)).describe(), "int32 (1, 2)");
}

TEST(Array, CountsElements) {
  EXPECT_EQ(Array().size(), 0u);
  EXPECT_EQ(Array::scalar(2.5).size(), 1u);
  EXPECT_EQ(Array(Shape{3, 0, 5}, std::vector<double>{}).size(), 0u);
  EXPECT_EQ(Array(Shape{2, 3}, std::vector<float>(6)).size(), 6u);
}

TEST(Array, EveryTypeHasItsSizeAndName) {
  const std::pair<std::string_view, std::size_t> expected[] = {
      {"float64", 8}, {"float32", 4}, {"float16", 2}, {"bfloat16", 2}, {"int64", 8},
      {"int32", 4},   {"int16", 2},   {"int8", 1},    {"uint64", 8},   {"uint32", 4},
      {"uint16", 2},  {"uint8", 1},   {"boolean", 1}};
  int index = 0;
  for (const auto& [name, size] : expected) {
    const auto dtype = static_cast<DType>(index++);
    EXPECT_EQ(to_string(dtype), name);
    EXPECT_EQ(item_size(dtype), size) << name;
  }
}

TEST(Array, RefusesShapesThatDoNotFitTheData) {
  expect_bad_input({"array", "40 bytes", "expected 48", "float64 (2, 3)"}, [] {
    Array(Shape{2, 3}, std::vector<double>(5));
  });
  expect_bad_input({"X", "9 bytes", "expected 8"},
                   [] { Array(DType::float64, {1}, std::vector<std::byte>(9), "X"); });
}

TEST(Array, RefusesImpossibleShapes) {
  expect_bad_input({"X", "shape[1] is -2"}, [] { Array(DType::float64, {3, -2}, {}, "X"); });
  expect_bad_input({"X", "exceeds the address space", "(4294967296, 4294967296)"}, [] {
    Array(DType::int8, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {}, "X");
  });
  expect_bad_input({"exceeds the address space"}, [] { Array(DType::float64, {std::int64_t{1} << 60}, {}); });
  // Zero elements, but axes whose product has no meaning.
  expect_bad_input({"exceeds the address space"}, [] {
    Array(DType::int8, {0, std::int64_t{1} << 40, std::int64_t{1} << 40}, {});
  });
  expect_bad_input({"has 33 axes", "at most 32"}, [] { Array(Shape(33, 1), std::vector<double>(1)); });
  EXPECT_EQ(Array(Shape(32, 1), std::vector<double>(1)).size(), 1u);
}

TEST(Array, RefusesBooleansThatAreNeitherZeroNorOne) {
  expect_bad_input({"mask[1, 0] is the byte 2"}, [] {
    Array(DType::boolean, {2, 2}, {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{1}}, "mask");
  });
}

TEST(Array, ViewsGiveTheElementsOfTheRightTypeOnly) {
  const std::vector<float> values = {1.5f, -2.0f};
  const Array array(values);
  EXPECT_EQ(std::vector<float>(array.view<float>().begin(), array.view<float>().end()), values);
  expect_bad_input({"float32 (2,)", "expected float64"}, [&] { array.view<double>(); });
}

TEST(Array, EqualityIsThatOfBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Array::scalar(nan), Array::scalar(nan));
  EXPECT_NE(Array::scalar(0.0), Array::scalar(-0.0));
  EXPECT_NE(Array(Shape{1, 2}, std::vector<double>(2)), Array(Shape{2, 1}, std::vector<double>(2)));
  EXPECT_NE(Array::scalar(std::int64_t{0}), Array::scalar(0.0));
}

TEST(Array, DoublesAndFloatsConvertBitForBit) {
  EXPECT_TRUE(rc::check("double to double", [](const std::vector<double>& values) {
    const auto back = Array(values).to_doubles();
    RC_ASSERT(Array(back) == Array(values));
  }));
  EXPECT_TRUE(rc::check("float to double and back", [](const std::vector<std::uint32_t>& bits) {
    const auto back = array_of(DType::float32, bits).to_doubles();
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float value = std::bit_cast<float>(bits[i]);
      if (!std::isnan(value))  // the processor may quieten a NaN
        RC_ASSERT(std::bit_cast<std::uint32_t>(static_cast<float>(back[i])) == bits[i]);
      else
        RC_ASSERT(std::isnan(back[i]));
    }
  }));
}

TEST(Array, Int64ConvertsToDoubleExactlyOrNotAtAll) {
  EXPECT_TRUE(rc::check("a double that converts back is the number itself", [](std::int64_t value) {
    const int shift = *rc::gen::inRange(0, 64);
    const std::int64_t number = value >> shift << (shift / 2);
    // Exact means: after dividing out powers of two, at most 53 bits are left.
    std::uint64_t odd =
        number < 0 ? ~static_cast<std::uint64_t>(number) + 1 : static_cast<std::uint64_t>(number);
    while (odd != 0 && odd % 2 == 0) odd /= 2;
    const bool exact = odd < std::uint64_t{1} << 53;
    try {
      const double converted = Array::scalar(number).to_doubles()[0];
      RC_ASSERT(exact);
      // The 64 bits of a long double hold both.
      RC_ASSERT(static_cast<long double>(converted) == static_cast<long double>(number));
    } catch (const Error&) {
      RC_ASSERT(!exact);
    }
  }));
}

TEST(Array, RefusesIntegersThatADoubleCannotHold) {
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
  expect_bad_input({"lengths[2] is 9007199254740993", "double"}, [] {
    Array(std::vector<std::int64_t>{1, 2, odd}).to_doubles("lengths");
  });
  expect_bad_input({"9223372036854775807"},
                   [] { Array::scalar(std::numeric_limits<std::int64_t>::max()).to_doubles(); });
  expect_bad_input({"18446744073709551615"},
                   [] { array_of(DType::uint64, std::vector<std::uint64_t>{UINT64_MAX}).to_doubles(); });
  EXPECT_EQ(Array::scalar(std::numeric_limits<std::int64_t>::min()).to_doubles()[0], -0x1p63);
  EXPECT_EQ(array_of(DType::uint64, std::vector<std::uint64_t>{std::uint64_t{1} << 63}).to_doubles()[0],
            0x1p63);
}

TEST(Array, RefusesNumbersThatAreNoInt64) {
  const double inf = std::numeric_limits<double>::infinity();
  expect_bad_input({"labels[1] is 1.5", "whole number"}, [] {
    Array(std::vector<double>{1, 1.5}).to_int64("labels");
  });
  expect_bad_input({"alpha[1, 2] is nan"}, [] {
    Array(Shape{2, 3}, std::vector<double>{0, 1, 2, 3, 4, std::nan("")}).to_int64("alpha");
  });
  expect_bad_input({"b is inf"}, [&] { Array::scalar(inf).to_int64("b"); });
  expect_bad_input({"-inf"}, [&] { Array::scalar(-inf).to_int64(); });
  expect_bad_input({"is 9.223372036854776e+18"}, [] { Array::scalar(0x1p63).to_int64(); });
  expect_bad_input({"array[0] is 0.5"}, [] { Array(std::vector<float>{0.5f}).to_int64(); });
  expect_bad_input({"9223372036854775808"}, [] {
    array_of(DType::uint64, std::vector<std::uint64_t>{std::uint64_t{1} << 63}).to_int64();
  });
}

TEST(Array, WholeNumbersOfEveryTypeBecomeInt64) {
  using Numbers = std::vector<std::int64_t>;
  EXPECT_EQ(Array::scalar(-0x1p63).to_int64(), Numbers{std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(Array::scalar(-0.0).to_int64(), Numbers{0});
  EXPECT_EQ(Array(std::vector<float>{-3.0f, 16777216.0f}).to_int64(), (Numbers{-3, 16777216}));
  EXPECT_EQ(array_of(DType::int8, std::vector<std::int8_t>{-128, 127}).to_int64(), (Numbers{-128, 127}));
  EXPECT_EQ(array_of(DType::uint8, std::vector<std::uint8_t>{0, 255}).to_int64(), (Numbers{0, 255}));
  EXPECT_EQ(array_of(DType::int16, std::vector<std::int16_t>{-32768}).to_int64(), Numbers{-32768});
  EXPECT_EQ(array_of(DType::uint16, std::vector<std::uint16_t>{65535}).to_int64(), Numbers{65535});
  EXPECT_EQ(array_of(DType::int32, std::vector<std::int32_t>{INT32_MIN}).to_int64(), Numbers{INT32_MIN});
  EXPECT_EQ(array_of(DType::uint32, std::vector<std::uint32_t>{UINT32_MAX}).to_int64(), Numbers{UINT32_MAX});
  EXPECT_EQ(array_of(DType::boolean, std::vector<std::uint8_t>{1, 0}).to_int64(), (Numbers{1, 0}));
}

TEST(Array, HalfPrecisionConvertsExactly) {
  const std::vector<std::uint16_t> half = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0400,
                                           0x0001, 0x03ff, 0x7c00, 0xfc00, 0x3555};
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(array_of(DType::float16, half).to_doubles(),
            (std::vector<double>{0.0, -0.0, 1.0, -2.0, 65504.0, 0x1p-14, 0x1p-24, 1023 * 0x1p-24, inf, -inf,
                                 0.333251953125}));
  EXPECT_TRUE(std::signbit(array_of(DType::float16, half).to_doubles()[1]));
  EXPECT_TRUE(std::isnan(array_of(DType::float16, std::vector<std::uint16_t>{0x7e00}).to_doubles()[0]));
  const std::vector<std::uint16_t> brain = {0x3f80, 0xc000, 0x7f80, 0x0001, 0x3e80};
  EXPECT_EQ(array_of(DType::bfloat16, brain).to_doubles(),
            (std::vector<double>{1.0, -2.0, inf, 0x1p-133, 0.25}));
}

}  // namespace
}  // namespace attmirror
