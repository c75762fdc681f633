#include "descent/model_fields.hpp"

#include "base/words.hpp"
#include "descent/optimizer_fields.hpp"
#include <attmirror/descent/run_config.hpp>

#include <algorithm>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

// ---- params, and what goes with it

Field<ModelPlan> params_field() {
  return made_field<ModelPlan>(
      {.name = "params", .help = "logits X W z, X K Q^T z or X A^T p", .choices = "W|KQ|prompt"},
      FieldKind::word,
      [](const ModelPlan& plan) -> FieldValue { return std::string(to_string(plan.parameterization)); },
      [](ModelPlan& plan, const FieldValue& value) {
        const auto& word = std::get<std::string>(value);
        if (word == "W")
          plan.parameterization = W{};
        else if (word == "KQ")
          plan.parameterization = KQ{};
        else if (word == "prompt")
          plan.parameterization = Prompt{};
        else
          throw bad_value("params", word, expected_choice(word, {"W", "KQ", "prompt"}));
        // At K = Q = 0 nothing moves.
        plan.init.kind = word == "KQ" ? InitKind::uniform : InitKind::zero;
      });
}

Field<ModelPlan> rank_field() {
  return made_field<ModelPlan>(
      {.name = "rank",
       .help = "columns of K and Q; 0: the dimension of the tokens",
       .range = Range::from(0),
       .shown_default = "0"},
      FieldKind::count,
      [](const ModelPlan& plan) -> FieldValue {
        const auto* kq = std::get_if<KQ>(&plan.parameterization);
        return kq == nullptr ? FieldValue{} : FieldValue{std::int64_t{kq->rank}};
      },
      [](ModelPlan& plan, const FieldValue& value) {
        const std::int64_t rank = std::get<std::int64_t>(value);
        if (auto* kq = std::get_if<KQ>(&plan.parameterization))
          kq->rank = rank;
        else if (rank != 0)
          throw Error(ErrorKind::bad_input,
                      fmt::format("{} is {}, but {} is {}: only KQ has a rank", field_name("rank"), rank,
                                  field_name("params"), to_string(plan.parameterization)),
                      {.field = "rank", .index = std::nullopt, .value = fmt::format("{}", rank)});
      });
}

Field<ModelPlan> key_weights_field() {
  return only_if(
      made_field<ModelPlan>(
          {.name = "key_weights",
           .help = "key weights A of a prompt, a .npy file of shape (d, d)",
           .shown_default = "the identity"},
          FieldKind::path,
          [](const ModelPlan& plan) -> FieldValue {
            return plan.key_weights_path.empty() ? FieldValue{} : FieldValue{plan.key_weights_path.string()};
          },
          [](ModelPlan& plan, const FieldValue& value) {
            plan.key_weights_path = std::get<std::string>(value);
          }),
      +[](const ModelPlan& plan) { return std::holds_alternative<Prompt>(plan.parameterization); },
      +[](const ModelPlan& plan) -> std::string {
        return fmt::format("{} is {}: only a prompt has them", field_name("params"),
                           to_string(plan.parameterization));
      });
}

Mask parse_mask(std::string_view word) {
  if (word == "none") return Mask::none;
  if (word == "causal") return Mask::causal;
  throw bad_value("mask", word,
                  "none or causal (a mask of your own is the array mask of the data)" +
                      did_you_mean(word, {"none", "causal"}));
}

// ---- the start

Field<ModelPlan> train_field() {
  return made_field<ModelPlan>(
      {.name = "train",
       .help = "blocks to train",
       .choices = "W|W,v|K,Q|p,v|BLOCKS",
       .shown_default = "all but v"},
      FieldKind::word,
      [](const ModelPlan& plan) -> FieldValue {
        std::vector<Block> train = blocks_to_train(plan);
        std::ranges::sort(train);  // training W,v is training v,W
        return to_string(train);
      },
      [](ModelPlan& plan, const FieldValue& value) {
        plan.attention.train = parse_blocks(std::get<std::string>(value));
      });
}

Field<ModelPlan> init_field() {
  return made_field<ModelPlan>(
      {.name = "init",
       .help = "initial weights; file:W0.npy and file:BLOCKS.npz read them from a file",
       .choices = "zero|uniform|normal:STD|file:PATH",
       .shown_default = "zero; uniform for KQ"},
      FieldKind::word,
      [](const ModelPlan& plan) -> FieldValue {
        if (!plan.init_path.empty()) return "file:" + plan.init_path.string();
        return init_word(plan.init);
      },
      [](ModelPlan& plan, const FieldValue& value) {
        const auto& word = std::get<std::string>(value);
        plan.init = {};
        if (!word.starts_with("file:")) {
          plan.init = parse_initialization(word, std::nullopt, ", file:W0.npy or file:BLOCKS.npz");
          return;
        }
        if (word.size() == 5) throw bad_value("init", word, "a file after the colon");
        plan.init_path = word.substr(5);
      });
}

Field<ModelPlan> init_seed_field() {
  return only_if(
      field_of_part<&ModelPlan::init, &Initialization::seed>(
          {.name = "init_seed", .help = "seed of normal and uniform"}),
      +[](const ModelPlan& plan) { return plan.init.kind != InitKind::zero; },
      +[](const ModelPlan& plan) -> std::string {
        return fmt::format("{} is {}: only uniform and normal are random", field_name("init"),
                           plan.init_path.empty() ? "zero" : "file:" + plan.init_path.string());
      });
}

}  // namespace

const Fields<ModelPlan>& model_fields() {
  using A = AttentionOptions;
  static const Fields<ModelPlan> fields{
      params_field(),
      rank_field(),
      key_weights_field(),
      field<&ModelPlan::loss, parse_loss>({.name = "loss",
                                           .help = "loss of the margin",
                                           .choices = fmt::format("{}", fmt::join(loss_names(), "|"))}),
      field_of_part<&ModelPlan::attention, &A::head, parse_head>(
          {.name = "head",
           .help =
               "prediction from the attended token u: v^T u; 1^T ReLU(V^T u) with the data's V; v^T u - LAMBDA |u|^2",
           .choices = fmt::format("{}", fmt::join(head_names(), "|"))}),
      field<&ModelPlan::mask, parse_mask>(
          {.name = "mask",
           .help = "causal: the query at token k attends to the tokens up to k (the data need query_index)",
           .choices = "none|causal"}),
      field_of_part<&ModelPlan::attention, &A::scaled>(
          {.name = "scaled", .help = "divide the logits by sqrt(d), or by sqrt(rank) for KQ"}),
      field_of_part<&ModelPlan::attention, &A::penalty>(
          {.name = "penalty",
           .help = "LAMBDA of the penalty LAMBDA |W|^2, LAMBDA (|K|^2 + |Q|^2) or LAMBDA |p|^2",
           .range = Range::from(0)}),
      train_field(),
      init_field(),
      init_seed_field(),
  };
  return fields;
}

const Fields<DescentOptions>& descent_fields() {
  using O = DescentOptions;
  static const Fields<O> fields{
      field<&O::steps>(
          {.name = "steps", .help = "number of steps", .range = Range::from(0), .headline = true}),
      field<&O::saturation>(
          {.name = "saturation",
           .help =
               "stop once the largest softmax probability, averaged over the queries, reaches this; 0: never",
           .range = Range::between(0, 1)}),
      field<&O::path, parse_data_path>(
          {.name = "data_path",
           .help =
               "how gradients pass through the data: in blocks of sequences, or one sequence after the other; auto chooses by size",
           .choices = "auto|block|stream",
           .member = "path"}),
      field<&O::storage, parse_token_storage>(
          {.name = "storage",
           .help =
               "float32 reads a copy of the tokens in half the memory, which is exact for tokens that are floats",
           .choices = "float64|float32"}),
      field<&O::max_seconds>(
          {.name = "max_seconds",
           .help = "stop after so many seconds, counting earlier parts of a resumed run; 0: never",
           .range = Range::from(0)}),
      made_field<O>(
          {.name = "record",
           .help =
               "the steps to record, such as 0,10,100; the last step is recorded, too, unless the run was interrupted",
           .choices = "log|log:PER_DECADE|every:K|none|STEPS",
           .shown_default = "log"},
          FieldKind::word, [](const O& options) -> FieldValue { return options.record.to_string(); },
          [](O& options, const FieldValue& value) {
            options.record = RecordSchedule::parse(std::get<std::string>(value));
          }),
      field<&O::keep, parse_keep>({.name = "keep",
                                   .help = "what each record keeps: weights and metrics, or metrics alone",
                                   .choices = "parameters|metrics"}),
  };
  return fields;
}

ModelPlan plan_model(const Given& given) {
  ModelPlan plan;
  apply(model_fields(), given, plan);
  return plan;
}

Given given_of(const ModelPlan& plan) {
  Given given;
  add_values(model_fields(), plan, given);
  return given;
}

const std::vector<const FieldInfo*>& training_fields() {
  static const std::vector<const FieldInfo*> all = [] {
    std::vector<const FieldInfo*> list = optimizer_fields();
    for (const FieldInfo& field : model_fields()) list.push_back(&field);
    for (const FieldInfo& field : descent_fields()) list.push_back(&field);
    return list;
  }();
  return all;
}

const FieldInfo& training_field(std::string_view name) {
  for (const FieldInfo* field : training_fields())
    if (field->name == name) return *field;
  throw bad_input(fmt::format("there is no field {}", name));
}

}  // namespace attmirror
