// A model of attention and its start, planned before data are read: which parameterization, loss, head and mask, which
// blocks are trained and where they begin.
//
// Words are checked first and files are read later: thousands of runs can be checked before the first one starts.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/initialization.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct ModelPlan {
  Parameterization parameterization;
  Loss loss;
  AttentionOptions attention;
  Mask mask = Mask::none;  // to put on the data
  Initialization init;
  std::filesystem::path key_weights_path, init_path;  // the files to read; empty: none
};

// The plan with the arrays of its files. Throws Error naming the file.
ModelPlan load_files(ModelPlan plan);

// Throws Error (bad input) when the model does not fit the data. Views `data`, on which the plan's mask must be.
Attention make_attention(const Dataset& data, const ModelPlan& plan);

// The blocks that the plan trains: those it names, or all of the attention.
std::vector<Block> blocks_to_train(const ModelPlan& plan);

// "W,v"
std::vector<Block> parse_blocks(std::string_view text);
std::string to_string(const std::vector<Block>& blocks);

}  // namespace attmirror
