#include "descent/model_plan.hpp"

#include "data/npy.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

void set_block(Parameters& parameters, const Block& block, const Array& array, const std::string& name) {
  if (block == Block::p || block == Block::v)
    make_vector(parameters, block) = to_vector(array, name);
  else
    make_matrix(parameters, block) = to_matrix(array, name);
}

// A .npy file is the attention's one block; an .npz file holds blocks by name, as final.npz of a run does.
Parameters load_initial_blocks(const std::filesystem::path& path, const Parameterization& parameterization) {
  Parameters given;
  if (path.extension() == ".npy") {
    if (std::holds_alternative<KQ>(parameterization))
      throw bad_input(
          fmt::format("init is file:{}: parameterization KQ needs an .npz file with K and Q", path.string()));
    const bool prompt = std::holds_alternative<Prompt>(parameterization);
    set_block(given, prompt ? Block::p : Block::W, load_npy(path), path.string());
    return given;
  }
  const NamedArrays arrays = load_npz(path);
  bool found = false;
  for (const Block& block : attention_blocks) {
    const auto array = arrays.find(std::string(to_string(block)));
    if (array == arrays.end()) continue;
    set_block(given, block, array->second, fmt::format("{}: {}", path.string(), array->first));
    found = true;
  }
  if (!found) throw bad_input(fmt::format("{} holds none of the blocks W, K, Q, p, v", path.string()));
  return given;
}

// A file that lacks what is to be trained (a dataset has a v, too) is a mistake; v may be left to the data.
void require_attention_blocks(const ModelPlan& plan) {
  for (const Block& block : blocks_to_train(plan))
    if (block != Block::v && !plan.init.given.has(block))
      throw bad_input(fmt::format("init is file:{}: the file has no {}, which is to be trained",
                                  plan.init_path.string(), to_string(block)));
}

}  // namespace

std::vector<Block> blocks_to_train(const ModelPlan& plan) {
  if (!plan.attention.train.empty()) return plan.attention.train;
  if (std::holds_alternative<W>(plan.parameterization)) return {Block::W};
  if (std::holds_alternative<KQ>(plan.parameterization)) return {Block::K, Block::Q};
  return {Block::p};
}

std::vector<Block> parse_blocks(std::string_view text) {
  std::vector<Block> blocks;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    blocks.push_back(parse_block(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return blocks;
    rest.remove_prefix(comma + 1);
  }
}

std::string to_string(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks) {
    if (!text.empty()) text += ',';
    text += to_string(block);
  }
  return text;
}

ModelPlan load_files(ModelPlan plan) {
  if (auto* prompt = std::get_if<Prompt>(&plan.parameterization); prompt && !plan.key_weights_path.empty())
    prompt->key_weights = to_matrix(load_npy(plan.key_weights_path), plan.key_weights_path.string());
  if (!plan.init_path.empty()) {
    plan.init.given = load_initial_blocks(plan.init_path, plan.parameterization);
    require_attention_blocks(plan);
  }
  return plan;
}

Attention make_attention(const Dataset& data, const ModelPlan& plan) {
  return Attention(data, plan.parameterization, plan.loss, plan.attention);
}

}  // namespace attmirror
