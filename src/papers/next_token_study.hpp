// What the experiments on P4 share: its random realizable problems, their targets, and curves over seeds. Internal.
//
// P4's experiment has |V| = d = 20, step sizes 0.2/sqrt(d) and 0.05/sqrt(d), and a "random realizable dataset" of
// which nothing else is told. Here it has 5 sentences of 4 to 6 tokens for each query, in three settings: one-hot or
// Gaussian unit embeddings, orders of three classes or linear ones.
#pragma once

#include "papers/workers.hpp"
#include <attmirror/base/figure.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/targets.hpp>
#include <attmirror/next_token/two_stage.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::next_token_study {

inline constexpr std::ptrdiff_t vocabulary = 20;
inline constexpr std::int64_t collocation_steps = 3'000;
inline constexpr std::int64_t attention_steps = 10'000;

struct Setting {
  std::string name;
  EmbeddingKind embedding = EmbeddingKind::one_hot;
  OrderKind order = OrderKind::three_class;
};
const std::array<Setting, 3>& settings();

// One random problem. Models view it: it stays where it is.
struct Problem {
  Problem(const Setting& setting, std::uint64_t seed);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  NextTokenData view() const { return {&embedding, &data.collocations, &data.sentences}; }

  RealizableData data;
  Embedding embedding;
  PartialOrders orders;
};

// Of seeds first_seed, first_seed + 1, ...
std::vector<std::unique_ptr<Problem>> make_problems(const Setting& setting, std::size_t seeds,
                                                    std::uint64_t first_seed = 1);

// P4's step sizes.
double collocation_lr();
double attention_lr();

// The value of a record's metric. Throws Error (bad input) where it has none of that name.
double metric(const Record& record, std::string_view name);

// What is left of the loss when all attention is on the tokens that the labels follow: W_kq can do no better
// in direction.
double loss_floor(const Problem& problem, const Matrix& W_ov);

// values[s][i] of seed s at steps[i]: the mean over seeds and a band of one standard deviation of single runs. On a
// logarithmic axis both are those of the logarithm.
enum class Averages { plain, of_logarithms };
Series band(std::string name, const std::vector<std::int64_t>& steps,
            const std::vector<std::vector<double>>& values, Averages averages, int color = -1);

// One number of each seed: values[s][i] at steps[i] == step.
std::vector<double> at_step(const std::vector<std::int64_t>& steps,
                            const std::vector<std::vector<double>>& values, std::int64_t step);

// The exponent a of values ~ step^-a between two steps, of each seed.
std::vector<double> exponents(const std::vector<std::int64_t>& steps,
                              const std::vector<std::vector<double>>& values, std::int64_t from,
                              std::int64_t to);

// "1.02 [0.98, 1.06]": a mean over seeds with its 95 % interval.
std::string interval_text(const std::vector<double>& values);

// What every experiment on these problems says of them.
std::vector<std::pair<std::string, std::string>> problem_configuration(std::size_t seeds,
                                                                       std::uint64_t first_seed = 1);

}  // namespace attmirror::next_token_study
