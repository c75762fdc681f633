// Names of blocks, and parameters that hold blocks of any name.
#include "support/files.hpp"
#include <attmirror/attention/parameters.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

static_assert(Block::W == Block("W") && Block::K != Block::Q);
static_assert(Block("W_kq").name() == "W_kq" && Block("a") < Block("b") && Block("a") < Block("aa"));

TEST(Block, IsANameThatAFileCanHold) {
  const std::string longest(Block::max_length, 'x');
  for (const std::string& name : {std::string("w"), std::string("W_ov"), std::string("layer2_K"), longest}) {
    EXPECT_TRUE(Block::is_name(name)) << name;
    EXPECT_EQ(Block(name).name(), name);
    EXPECT_EQ(Block(name), Block(name));
  }
  EXPECT_NE(Block(longest), Block(longest.substr(1)));
  EXPECT_FALSE(Block::is_name(std::string_view("w\0", 2)));
  for (const std::string& name :
       {std::string(), std::string("2w"), std::string("_w"), std::string("a.b"), std::string("a b"),
        longest + "x", std::string("ü"), std::string("step"), std::string("loss"), std::string("selected"),
        std::string("norm"), std::string("kept"), std::string("fixed_w"), std::string("format_version")}) {
    EXPECT_FALSE(Block::is_name(name)) << name;
    expect_bad_input({"cannot be the name of a block"}, [&] { (void)Block(std::string_view(name)); });
  }
}

TEST(Parameters, HoldBlocksOfAnyName) {
  Parameters parameters{.W = Matrix::Ones(2, 2)};
  parameters.matrices["U"] = Matrix::Constant(2, 3, 4);
  parameters.vectors["bias"] = Vector::Constant(5, 6);
  parameters.matrices["empty"];
  EXPECT_EQ(block_names(parameters), (std::vector<Block>{Block::W, "U", "bias"}));
  EXPECT_TRUE(parameters.has("U"));
  EXPECT_FALSE(parameters.has("empty"));
  EXPECT_EQ(parameters.matrix("U")(1, 2), 4);
  EXPECT_EQ(parameters.matrix("W").size(), 4);
  EXPECT_EQ(parameters.vector("bias").size(), 5);
  expect_bad_input({"no block X", "W, U, bias"}, [&] { parameters.matrix("X"); });
  expect_bad_input({"no block v"}, [&] { parameters.vector("v"); });
  expect_bad_input({"bias is a vector"}, [&] { parameters.matrix("bias"); });
  expect_bad_input({"U is a matrix"}, [&] { parameters.vector("U"); });
  expect_bad_input({"W is a matrix"}, [&] { make_vector(parameters, "W"); });
  expect_bad_input({"p is a vector"}, [&] { make_matrix(parameters, "p"); });
}

TEST(ParameterBlocks, GoThereAndBackForAnyName) {
  ParameterBlocks blocks({BlockShape::matrix("U", 2, 3), {"T", 4, 2, true}, BlockShape::vector("bias", 5)});
  Parameters given;
  given.matrices["U"] = (Matrix(2, 3) << 1, 2, 3, 4, 5, 6).finished();
  given.matrices["T"] = (Matrix(2, 4) << 1, 2, 3, 4, 5, 6, 7, 8).finished();
  given.vectors["bias"] = Vector::LinSpaced(5, 0, 4);
  blocks.assign(given);
  EXPECT_EQ(blocks.view(1).eigen()(3, 0), 4);  // stored transposed
  const Parameters back = blocks.parameters();
  EXPECT_EQ(back.matrix("U"), given.matrix("U"));
  EXPECT_EQ(back.matrix("T"), given.matrix("T"));
  EXPECT_EQ(back.vector("bias"), given.vector("bias"));
  EXPECT_EQ(blocks.find("bias"), 2);
  EXPECT_EQ(blocks.find("W"), -1);

  given.vectors["bias"] = Vector::Zero(4);
  expect_bad_input({"bias has 4 entries: expected 5"}, [&] { blocks.assign(given); });
  given.vectors.clear();
  expect_bad_input({"bias has 0 entries: expected 5"}, [&] { blocks.assign(given); });
  given.matrices["bias"] = Matrix::Zero(5, 1);
  expect_bad_input({"bias is a matrix of shape (5, 1)"}, [&] { blocks.assign(given); });
  expect_bad_input({"two blocks are called U"}, [] {
    ParameterBlocks({BlockShape::matrix("U", 1, 1), BlockShape::vector("U", 1)});
  });
  expect_bad_input({"block v is to be a matrix"}, [] { ParameterBlocks({BlockShape::matrix("v", 1, 1)}); });
  expect_bad_input({"block W is to be a vector"}, [] { ParameterBlocks({BlockShape::vector("W", 1)}); });
}

}  // namespace
}  // namespace attmirror::test
