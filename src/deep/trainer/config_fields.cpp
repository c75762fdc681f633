#include "deep/trainer/config_fields.hpp"

#include "descent/optimizer_fields.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

// ---- keys that only some kinds or optimizers have

std::string only_for(std::initializer_list<std::string_view> kinds, std::string_view key,
                     std::string_view chosen) {
  if (std::ranges::find(kinds, chosen) != kinds.end()) return "";
  return fmt::format("{} is {}: only {} {} it", field_name(key), chosen, fmt::join(kinds, ", "),
                     kinds.size() == 1 ? "takes" : "take");
}

std::string only_for_methods(std::initializer_list<std::string_view> methods, const TrainConfig& config) {
  return only_for(methods, "optimizer.name", current_method(config.optimizer.name));
}

std::string text_only(const TrainConfig& config) { return only_for({"text"}, "data.kind", config.data.kind); }
std::string images_only(const TrainConfig& config) {
  return only_for({"images"}, "data.kind", config.data.kind);
}
std::string encoder_only(const TrainConfig& config) {
  return only_for({"encoder"}, "model.kind", config.model.kind);
}
std::string vit_only(const TrainConfig& config) { return only_for({"vit"}, "model.kind", config.model.kind); }
std::string md_only(const TrainConfig& config) { return only_for_methods({"md"}, config); }
std::string mirror_only(const TrainConfig& config) { return only_for_methods({"md", "gd"}, config); }
std::string muon_only(const TrainConfig& config) { return only_for_methods({"muon-adamw"}, config); }
std::string adaptive_only(const TrainConfig& config) {
  return only_for_methods({"adam", "adamw", "muon-adamw"}, config);
}
std::string momentum_only(const TrainConfig& config) {
  return only_for_methods({"md", "gd", "sign", "signum", "muon-adamw"}, config);
}

// ---- keys of the four tables

using KeyIdle = std::string (*)(const TrainConfig&);

template <auto part, auto member, auto parse = nullptr>
Field<TrainConfig> key(std::string name, std::string help, const char* choices, KeyIdle idle = nullptr) {
  return only_if(field_of_part<part, member, parse>(
                     {.name = std::move(name), .help = std::move(help), .choices = choices}),
                 nullptr, idle);
}
template <auto part, auto member>
Field<TrainConfig> key(std::string name, std::string help, Range range, KeyIdle idle = nullptr) {
  return only_if(
      field_of_part<part, member>({.name = std::move(name), .help = std::move(help), .range = range}),
      nullptr, idle);
}
template <auto part, auto member>
Field<TrainConfig> key(std::string name, std::string help, KeyIdle idle = nullptr) {
  return key<part, member>(std::move(name), std::move(help), Range{}, idle);
}

// The same training, elsewhere or at another pace.
Field<TrainConfig> place(Field<TrainConfig> field) {
  field.place = true;
  return field;
}

// A key that version 0.1.0 had under another name. config.json keeps that one, so that each version reads what the
// other wrote; TOML files may have either.
Field<TrainConfig> formerly(std::string name, Field<TrainConfig> field) {
  field.key = std::move(name);
  return field;
}

constexpr Range key_positive = Range::above(0), key_from_0 = Range::from(0),
                key_share = Range::from_to_below(0, 1);
constexpr double widest = 1 << 20;

Fields<TrainConfig> data_keys() {
  constexpr auto data = &TrainConfig::data;
  using D = DataConfig;
  return {
      key<data, &D::kind>("data.kind", "what the network reads", "text|images"),
      place(
          key<data, &D::train>("data.train",
                               "texts: a token file (.safetensors), a .tsv or .tsv.xz file, half of aclImdb; "
                               "images: a .bin or .bin.xz file of CIFAR-10, or the folder of them")),
      place(key<data, &D::test>("data.test", "the test set, in the same kinds of files")),
      place(key<data, &D::vocabulary>("data.vocabulary",
                                      "texts: the file of WordPieces, one per line; token files need none",
                                      text_only)),
      place(key<data, &D::columns>("data.columns", "of .tsv files", "auto|label,text|text,label", text_only)),
      key<data, &D::length>("data.length",
                            "the most ids of a text, including [CLS] and [SEP]; the rest is cut off",
                            Range::between(2, widest), text_only),
      key<data, &D::limit>("data.limit", "train with only so many rows, evenly spaced over the file; 0: all",
                           key_from_0),
      key<data, &D::test_limit>("data.test_limit",
                                "measure on only so many rows of the test set, evenly spaced; 0: all",
                                key_from_0),
      key<data, &D::validation>("data.validation",
                                "share of the training rows that is held out, evenly spaced: metrics.jsonl "
                                "has their loss and accuracy; 0: none",
                                key_share),
      key<data, &D::validation_block>(
          "data.validation_block",
          "neighboring rows that are held out together; in IMDb's files reviews of a film with the same label are "
          "neighbors, and 500 keeps nearly all of these on one side",
          Range::between(1, 1 << 30)),
      place(key<data, &D::cache>("data.cache", "texts: folder in which token files are kept", text_only)),
      key<data, &D::padding>("data.padding",
                             "images: width of the border of zeros that is added before a random crop",
                             Range::between(0, 1024), images_only),
      key<data, &D::mirror>("data.mirror", "images: probability of being mirrored", Range::between(0, 1),
                            images_only),
  };
}

Fields<TrainConfig> model_keys() {
  constexpr auto model = &TrainConfig::model;
  using M = ModelConfig;
  const Range size = Range::between(1, widest), pixels = Range::between(1, 4096);
  return {
      key<model, &M::kind>("model.kind", "for texts and for images", "encoder|vit"),
      key<model, &M::width>("model.width", "width of the model: numbers per token", size),
      key<model, &M::blocks>("model.blocks", "number of blocks, each of attention and an MLP",
                             Range::between(1, 10000)),
      key<model, &M::heads>("model.heads", "attention heads of a block", size),
      key<model, &M::hidden>("model.hidden", "width of the MLP; 0: four times that of the model",
                             Range::between(0, widest)),
      key<model, &M::dropout>("model.dropout", "probability that a number is dropped in training", key_share),
      key<model, &M::attention>(
          "model.attention",
          "packed is for CPUs, fused for GPUs: the same numbers, up to rounding and the dropout of fused",
          "automatic|plain|packed|fused"),
      key<model, &M::last_block>("model.last_block",
                                 "first_token: of the last block, only what the answer reads is computed",
                                 "first_token|all_tokens"),
      key<model, &M::embedding_deviation>("model.embedding_deviation",
                                          "encoder: of the initial embeddings; P1 has PyTorch's 1, and where "
                                          "most words are rare, far smaller ones learn better",
                                          key_positive, encoder_only),
      key<model, &M::image>("model.image", "vit: pixels to which the sides of images are resized", pixels,
                            vit_only),
      key<model, &M::patch>("model.patch", "vit: pixels of a side of the patches into which they are cut",
                            pixels, vit_only),
      key<model, &M::head_width>("model.head_width", "vit: width of each head", size, vit_only),
  };
}

std::string trainer_methods() {
  std::string choices;
  for (const MethodName& method : method_names)
    if (method.in_trainer) choices += fmt::format("{}{}", choices.empty() ? "" : "|", method.name);
  return choices;
}

Field<TrainConfig> method_key() {
  return made_field<TrainConfig>(
      {.name = "optimizer.name", .help = "what moves the weights", .choices = trainer_methods()},
      FieldKind::word,
      [](const TrainConfig& config) -> FieldValue {
        return std::string(current_method(config.optimizer.name));
      },
      [](TrainConfig& config, const FieldValue& value) {
        const std::string name(current_method(std::get<std::string>(value)));
        check_value({.choices = trainer_methods(), .listed = true}, name, "optimizer.name");
        config.optimizer.name = name;
      });
}

Fields<TrainConfig> optimizer_keys() {
  constexpr auto optimizer = &TrainConfig::optimizer;
  using O = OptimizerConfig;
  return {
      method_key(),
      key<optimizer, &O::lr>("optimizer.lr",
                             "step size, for the loss summed over a batch unless train.loss is mean",
                             key_positive),
      key<optimizer, &O::p>("optimizer.p", "md: p of its potential; near 1 gives sparse weights",
                            Range::above(1), md_only),
      key<optimizer, &O::attention_p>("optimizer.attention_p",
                                      "md: p of the potential of the maps Q, K and V; 0: that of the rest",
                                      key_from_0, md_only),
      key<optimizer, &O::attention_lr>("optimizer.attention_lr",
                                       "md: step size of the maps Q, K and V; 0: that of the rest",
                                       key_from_0, md_only),
      key<optimizer, &O::momentum>(
          "optimizer.momentum",
          "md, gd, sign, signum, muon-adamw: beta of M <- beta M + g, which takes the place of g", key_share,
          momentum_only),
      key<optimizer, &O::nesterov>("optimizer.nesterov",
                                   "md, gd, sign, signum, muon-adamw: step along g + beta M instead of M",
                                   momentum_only),
      key<optimizer, &O::normalized>(
          "optimizer.normalized", "md, gd: divide the gradient of each tensor by its dual norm", mirror_only),
      key<optimizer, &O::weight_decay>(
          "optimizer.weight_decay",
          "decoupled: w <- (1 - lr weight_decay) w; with adam it joins the gradient", key_from_0),
      key<optimizer, &O::betas>(
          "optimizer.betas",
          "adam, adamw, muon-adamw: weights of the past in the averages of gradients and of their squares",
          key_share, adaptive_only),
      key<optimizer, &O::eps>("optimizer.eps",
                              "adam, adamw, muon-adamw: added to the root of the average of squares",
                              key_positive, adaptive_only),
      key<optimizer, &O::other_lr>(
          "optimizer.other_lr",
          "muon-adamw: step size of the AdamW that moves embeddings, head, norms and biases", key_positive,
          muon_only),
      key<optimizer, &O::schedule>("optimizer.schedule",
                                   "linear and cosine take lr down to 0 at the last epoch",
                                   "constant|linear|cosine"),
      key<optimizer, &O::warmup>("optimizer.warmup", "epochs in which lr rises from 0", key_from_0),
  };
}

std::string parse_device(const std::string& text) {
  const bool is_numbered = text.starts_with("cuda:") && text.size() > 5 && text.size() < 9 &&
                           text.find_first_not_of("0123456789", 5) == std::string::npos;
  if (text == "auto" || text == "cpu" || text == "cuda" || is_numbered) return text;
  throw bad_value("train.device", text, "\"auto\", \"cpu\", \"cuda\" or \"cuda:NUMBER\"");
}

std::string parse_save_epochs(const std::string& text) {
  saved_epochs(text);
  return text;
}

Fields<TrainConfig> loop_keys() {
  constexpr auto train = &TrainConfig::train;
  using L = LoopConfig;
  const Range epochs = Range::between(1, 1'000'000);
  return {
      key<train, &L::epochs>("train.epochs", "passes over the training set, at most", epochs),
      key<train, &L::batch>("train.batch", "samples of a step, of all processes together",
                            Range::between(1, 1 << 24)),
      key<train, &L::loss>("train.loss",
                           "loss of a batch; with the sum, as in P1, steps grow with the size of the batch",
                           "sum|mean"),
      key<train, &L::seed>("train.seed",
                           "init_seed, order_seed and dropout_seed follow it unless they are set"),
      key<train, &L::init_seed>("train.init_seed", "of the initial weights"),
      key<train, &L::order_seed>("train.order_seed", "seed of the order of samples"),
      key<train, &L::dropout_seed>("train.dropout_seed", "of dropout"),
      key<train, &L::trials>(
          "train.trials",
          "number of trainings, one after another, each with seeds of its own, which results.json lists",
          Range::between(1, 100'000)),
      key<train, &L::stop_train_accuracy>(
          "train.stop_train_accuracy",
          "P1's rule: stop at this accuracy over an epoch, measured while training; above 1: never",
          key_positive),
      key<train, &L::evaluate_every>("train.evaluate_every", "epochs between measurements on the test set",
                                     epochs),
      place(key<train, &L::save_epochs, parse_save_epochs>(
          "train.save_epochs",
          "epochs after which weights are kept, as epoch-1.safetensors and so on; 0: the initial ones",
          "EPOCH,EPOCH,...")),
      place(key<train, &L::attention_every>(
          "train.attention_every",
          "epochs between measurements of attention on test samples, besides the first and the last; 0: never",
          Range::between(0, 1'000'000))),
      key<train, &L::divergence>("train.divergence",
                                 "a mean loss of so many times log(classes) over an epoch ends the trial as "
                                 "diverged, and so does a loss or weight that is not finite",
                                 Range::above(1)),
      place(key<train, &L::checkpoint_seconds>("train.checkpoint_seconds", "seconds between checkpoints",
                                               key_from_0)),
      formerly(
          "train.time_limit",
          place(key<train, &L::max_seconds>(
              "train.max_seconds",
              "time limit in seconds, after which a checkpoint is written and the command ends with exit code 0; 0: no limit",
              key_from_0))),
      place(key<train, &L::device, parse_device>("train.device", "auto: a GPU where there is one",
                                                 "auto|cpu|cuda|cuda:NUMBER")),
      key<train, &L::precision>("train.precision", "auto: bf16 on a GPU, with parameters and sums in fp32",
                                "auto|fp32|bf16"),
      place(key<train, &L::threads>("train.threads", "threads of the CPU; 0: as many as the machine has",
                                    Range::between(0, 1024))),
      place(key<train, &L::graphs>(
          "train.graphs",
          "steps and evaluations on a GPU are recorded as CUDA graphs and repeated by one call; "
          "auto: where they can be",
          "auto|on|off")),
  };
}

}  // namespace

std::string_view current_method(std::string_view name) { return name == "muon" ? "muon-adamw" : name; }

const Fields<TrainConfig>& config_fields() {
  static const Fields<TrainConfig> fields = [] {
    Fields<TrainConfig> list;
    for (const auto& keys : {data_keys(), model_keys(), optimizer_keys(), loop_keys()})
      list.insert(list.end(), keys.begin(), keys.end());
    return list;
  }();
  return fields;
}

// Options of P1, and of those who use the others.
ModelConfig model_preset(std::string_view kind) {
  if (kind != "vit") return {};
  return {.kind = "vit", .width = 512, .blocks = 6, .heads = 8, .hidden = 512, .dropout = 0.1};
}

OptimizerConfig optimizer_preset(std::string_view name) {
  OptimizerConfig preset{.name = std::string(name)};
  if (name == "gd") preset.lr = 4e-4, preset.p = 2;
  if (name == "sign" || name == "signum" || name == "adam" || name == "adamw") preset.lr = 1e-4;
  if (name == "signum") preset.momentum = 0.9;
  if (name == "adamw") preset.weight_decay = 0.01;
  if (name == "muon-adamw") preset.lr = 0.02, preset.momentum = 0.95, preset.nesterov = true;
  return preset;
}

}  // namespace attmirror
