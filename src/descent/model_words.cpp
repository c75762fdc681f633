#include <attmirror/base/error.hpp>
#include <attmirror/data/npy.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/model_words.hpp>
#include <attmirror/descent/run_config.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror {

namespace {

Parameterization plan_parameterization(const ModelWords& words) {
  const std::string params = words.params.value_or("W");
  const std::int64_t rank = words.rank.value_or(0);
  if (params != "KQ" && rank != 0)
    throw bad_input(fmt::format("rank is {}, but params is {}: only KQ has a rank", rank, params));
  if (params != "prompt" && words.key_weights)
    throw bad_input(fmt::format("key-weights is given, but params is {}: only a prompt has them", params));
  if (params == "W") return W{};
  if (params == "KQ") return KQ{rank};
  if (params == "prompt") return Prompt{};
  throw bad_input(fmt::format("params is \"{}\": expected W, KQ or prompt", params));
}

Initialization plan_init(const ModelWords& words, ModelPlan& plan) {
  const bool kq = std::holds_alternative<KQ>(plan.parameterization);
  const std::string word = words.init.value_or(kq ? "uniform" : "zero");
  if (!word.starts_with("file:"))
    return parse_initialization(word, words.init_seed, ", file:W0.npy or file:BLOCKS.npz");
  if (words.init_seed)
    throw bad_input(
        fmt::format("init-seed is given, but init is {}: only uniform and normal are random", word));
  if (word.size() == 5) throw bad_input("init is \"file:\": expected a file after the colon");
  plan.init_path = word.substr(5);
  return {};
}

void set_block(Parameters& parameters, Block block, const Array& array, const std::string& name) {
  visit_block(parameters, block, [&](auto& values) {
    if constexpr (std::is_same_v<decltype(values), Vector&>)
      values = to_vector(array, name);
    else
      values = to_matrix(array, name);
  });
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
  for (const Block block : all_blocks) {
    const auto array = arrays.find(std::string(to_string(block)));
    if (array == arrays.end()) continue;
    set_block(given, block, array->second, fmt::format("{}: {}", path.string(), array->first));
    found = true;
  }
  if (!found) throw bad_input(fmt::format("{} holds none of the blocks W, K, Q, p, v", path.string()));
  return given;
}

std::vector<Block> blocks_to_train(const ModelPlan& plan) {
  if (!plan.attention.train.empty()) return plan.attention.train;
  if (std::holds_alternative<W>(plan.parameterization)) return {Block::W};
  if (std::holds_alternative<KQ>(plan.parameterization)) return {Block::K, Block::Q};
  return {Block::p};
}

// A file that lacks what is to be trained (a dataset has a v, too) is a mistake; v may be left to the data.
void require_attention_blocks(const ModelPlan& plan) {
  for (const Block block : blocks_to_train(plan))
    if (block != Block::v &&
        visit_block(plan.init.given, block, [](const auto& values) { return values.size() == 0; }))
      throw bad_input(fmt::format("init is file:{}: the file has no {}, which is to be trained",
                                  plan.init_path.string(), to_string(block)));
}

}  // namespace

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
  for (const Block block : blocks) {
    if (!text.empty()) text += ',';
    text += to_string(block);
  }
  return text;
}

ModelPlan plan_model(const ModelWords& words) {
  ModelPlan plan;
  if (words.loss) plan.loss = parse_loss(*words.loss);
  if (words.train) plan.attention.train = parse_blocks(*words.train);
  if (words.head) plan.attention.head = parse_head(*words.head);
  plan.attention.scaled = words.scaled.value_or(false);
  plan.attention.penalty = words.penalty.value_or(0);
  const std::string mask = words.mask.value_or("none");
  if (mask != "none" && mask != "causal")
    throw bad_input(fmt::format(
        "mask is \"{}\": expected none or causal (a mask of your own is the array mask of the data)", mask));
  if (mask == "causal") plan.mask = Mask::causal;
  plan.parameterization = plan_parameterization(words);
  plan.key_weights_path = words.key_weights.value_or("");
  plan.init = plan_init(words, plan);
  return plan;
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

ModelWords words_of(const ModelPlan& plan) {
  ModelWords words;
  words.params = std::string(to_string(plan.parameterization));
  if (const auto* kq = std::get_if<KQ>(&plan.parameterization)) words.rank = kq->rank;
  if (!plan.key_weights_path.empty()) words.key_weights = plan.key_weights_path;
  words.loss = to_string(plan.loss);
  words.head = to_string(plan.attention.head);
  words.mask = std::string(to_string(plan.mask));
  words.scaled = plan.attention.scaled;
  words.penalty = plan.attention.penalty;
  std::vector<Block> train = blocks_to_train(plan);
  std::ranges::sort(train);  // training W,v is training v,W
  words.train = to_string(train);
  if (!plan.init_path.empty())
    words.init = "file:" + plan.init_path.string();
  else if (plan.init.kind == InitKind::normal)
    words.init = fmt::format("normal:{}", plan.init.std);
  else
    words.init = std::string(to_string(plan.init.kind));
  if (plan.init.kind != InitKind::zero) words.init_seed = plan.init.seed;
  return words;
}

Attention make_attention(const Dataset& data, const ModelPlan& plan) {
  return Attention(data, plan.parameterization, plan.loss, plan.attention);
}

}  // namespace attmirror
