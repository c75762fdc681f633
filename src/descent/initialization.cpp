#include "base/words.hpp"
#include "descent/fill_random.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/initialization.hpp>

#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace attmirror {

void fill_random(Eigen::Ref<Matrix> block, const Initialization& init, RandomStream stream,
                 std::ptrdiff_t dim) {
  fill_random(block, init, CounterRandom(init.seed, stream), dim);
}

void fill_random(Eigen::Ref<Matrix> block, const Initialization& init, const CounterRandom& random,
                 std::ptrdiff_t dim) {
  const double bound = 1 / std::sqrt(static_cast<double>(dim));
  for (std::ptrdiff_t i = 0; i < block.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < block.cols(); ++j) {
      const auto index = static_cast<std::uint64_t>(i * block.cols() + j);
      block(i, j) = init.kind == InitKind::normal ? init.std * random.normal(index)
                                                  : bound * (2 * random.uniform(index) - 1);
    }
}

namespace {

double parse_std(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size() ||
      std::isspace(static_cast<unsigned char>(text.front())))
    throw bad_input(fmt::format("std of {} is \"{}\": expected a number", field_name("init"), text));
  return value;
}

}  // namespace

Initialization parse_initialization(const std::string& word, std::optional<std::uint64_t> seed,
                                    std::string_view others) {
  Initialization init;
  init.seed = seed.value_or(0);
  if (word == "zero") {
    if (seed)
      throw bad_input(fmt::format("{} is given, but {} is zero: only uniform and normal are random",
                                  field_name("init_seed"), field_name("init")));
  } else if (word == "uniform") {
    init.kind = InitKind::uniform;
  } else if (word == "normal" || word.starts_with("normal:")) {
    if (word == "normal:") throw bad_value("init", word, "a number after the colon");
    init.kind = InitKind::normal;
    if (word.size() > 7) init.std = parse_std(word.substr(7));
  } else {
    throw bad_value(
        "init", word,
        fmt::format("zero, normal, normal:STD{}uniform{}{}", others.empty() ? " or " : ", ", others,
                    did_you_mean(word.substr(0, word.find(':')), {"zero", "normal", "uniform"})));
  }
  init.validate();
  return init;
}

std::string init_word(const Initialization& init) {
  switch (init.kind) {
    case InitKind::zero:
      return "zero";
    case InitKind::normal:
      return fmt::format("normal:{}", init.std);
    case InitKind::uniform:
      return "uniform";
  }
  return "unknown";
}

void Initialization::validate() const {
  if (!(std >= 0) || std::isinf(std))
    throw bad_input(
        fmt::format("std of the initialization is {}: expected a finite number, 0 or greater", std));
}

Parameters initial_parameters(const Attention& model, const Initialization& init) {
  init.validate();
  Parameters start = model.zero_parameters();
  const std::ptrdiff_t d = model.data().dim();
  if (init.kind != InitKind::zero) {
    if (start.W.size() > 0) fill_random(start.W, init, RandomStream::init_W, d);
    if (start.K.size() > 0) fill_random(start.K, init, RandomStream::init_K, d);
    if (start.Q.size() > 0) fill_random(start.Q, init, RandomStream::init_Q, d);
    if (start.p.size() > 0) {
      Matrix row(1, d);
      fill_random(row, init, RandomStream::init_prompt, d);
      start.p = row.transpose();
    }
  }
  visit_blocks(start, init.given, [&](const Block& block, auto& into, const auto& from) {
    if (from.size() == 0) return;
    if (!model.has_block(block))
      throw bad_input(fmt::format("an initial {} is given, but parameterization {} has no such block",
                                  to_string(block), to_string(model.parameterization())));
    into = from;
  });
  ParameterBlocks(model.blocks()).assign(start);  // checks shapes and finiteness
  if (start.K.size() > 0 && start.K.isZero(0) && start.Q.isZero(0))
    throw bad_input(
        "K and Q both start at 0, where the gradient is 0: start them from uniform, normal or a file");
  return start;
}

}  // namespace attmirror
