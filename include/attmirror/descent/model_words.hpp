// A model and its start in words and numbers, as users name them: the options of `attmirror train` and the settings of
// a sweep.
//
//   const ModelPlan plan = load_files(plan_model({.params = "KQ", .rank = 4, .init = "normal:0.1", .init_seed = 7}));
//   const Attention model = make_attention(data, plan);
//
// Words are checked first and files are read later: thousands of runs can be checked before the first one starts.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/initialization.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace attmirror {

// A word that is empty was not given.
struct ModelWords {
  std::optional<std::string> params{};                 // W, KQ or prompt; W
  std::optional<std::int64_t> rank{};                  // of KQ; 0: the dimension of the tokens
  std::optional<std::filesystem::path> key_weights{};  // of a prompt: .npy; the identity
  std::optional<std::string> loss{};                   // logistic
  std::optional<std::string> head{};                   // linear
  std::optional<std::string> mask{};                   // none or causal; none
  std::optional<bool> scaled{};                        // false
  std::optional<double> penalty{};                     // 0
  std::optional<std::string> train{};                  // "W,v"; all blocks of the attention
  std::optional<std::string> init{};         // zero, uniform, normal:STD or file:PATH; zero, uniform for KQ
  std::optional<std::uint64_t> init_seed{};  // of uniform and normal; 0

  friend bool operator==(const ModelWords&, const ModelWords&) = default;
};

// What the words mean.
struct ModelPlan {
  Parameterization parameterization;
  Loss loss;
  AttentionOptions attention;
  Mask mask = Mask::none;  // to put on the data
  Initialization init;
  std::filesystem::path key_weights_path, init_path;  // the files to read; empty: none
};

// Throws Error (bad input) for words that do not parse or exclude each other. Reads no file.
ModelPlan plan_model(const ModelWords& words);

// The plan with the arrays of its files. Throws Error naming the file.
ModelPlan load_files(ModelPlan plan);

// Every word that matters for this plan, defaults included; plan_model() gives an equal one.
ModelWords words_of(const ModelPlan& plan);

// Throws Error (bad input) when the model does not fit the data. Views `data`, on which the plan's mask must be.
Attention make_attention(const Dataset& data, const ModelPlan& plan);

// "W,v"
std::vector<Block> parse_blocks(std::string_view text);
std::string to_string(const std::vector<Block>& blocks);

}  // namespace attmirror
