#include "deep/keyed_dropout.hpp"
#include "deep/networks.hpp"
#include "deep/packed_attention.hpp"
#include <attmirror/deep/encoder_classifier.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror::deep_tests {
namespace {

const std::vector<std::int64_t> ragged{4, 1, 9, 2, 7};

// Parameters and arithmetic in double.
am::EncoderClassifier wide_encoder(const am::EncoderOptions& options, std::uint64_t seed = 3) {
  am::EncoderClassifier network(options, seed, at::kDouble);
  widen(network);
  return network;
}

// The network as it is usually written: all texts filled up to the longest, and a mask that hides what was filled up.
// Column 0 is always visible. Also the attention probabilities of every block, [samples, heads, rows, rows]. Dropout,
// where `batch` has keys: site 4 b of the probabilities of block b, 4 b + 1 after O, 4 b + 2 after the MLP.
struct Padded {
  at::Tensor logits;
  std::vector<at::Tensor> probabilities;
};

// Factors of dropout (0 or 1 / (1 - p)), found by dropping ones. Of rows [rows, width]; of probabilities, from equal
// scores and one-hot values, [heads, rows, rows].
at::Tensor row_factors(double p, const at::Tensor& keys, std::int64_t width, std::int64_t site) {
  return am::dropped(at::ones({keys.size(0), width}, at::kDouble),
                     {p, keys, static_cast<std::uint32_t>(site)});
}
at::Tensor probability_factors(double p, const at::Tensor& keys, std::int64_t heads, std::int64_t site) {
  const std::int64_t length = keys.size(0);
  const at::Tensor zeros = at::zeros({length, heads, length}, at::kDouble);
  const at::Tensor one_hot = at::eye(length, at::kDouble).unsqueeze(1).expand({length, heads, length});
  const am::PackedRows rows{at::tensor({0, static_cast<int>(length)}, at::kInt), length};
  const am::AttentionDropout dropout{p, keys, static_cast<std::uint32_t>(site), 0, 0};
  return am::packed_attention(zeros, zeros, one_hot, rows, rows, dropout, am::AttentionKind::plain)
             .transpose(0, 1) *
         static_cast<double>(length);
}

Padded padded(const am::EncoderClassifier& network, const TokenSet& texts, const am::Batch& batch = {}) {
  const auto parameters = network.named_parameters();
  const am::EncoderOptions& o = network.options();
  const std::int64_t samples = texts.rows(), head_width = o.width / o.heads;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < samples; ++i)
    longest = std::max(longest, static_cast<std::int64_t>(texts.row(i).size()));
  at::Tensor ids = at::zeros({samples, longest}, at::kLong),
             visible = at::zeros({samples, longest}, at::kBool);
  for (std::int64_t i = 0; i < samples; ++i)
    for (std::size_t t = 0; t < texts.row(i).size(); ++t) {
      ids[i][static_cast<std::int64_t>(t)] = texts.row(i)[t];
      visible[i][static_cast<std::int64_t>(t)] = true;
    }
  visible.select(1, 0).fill_(true);
  const at::Tensor hidden = visible.logical_not().view({samples, 1, 1, longest});
  const auto drop = [&](const at::Tensor& full, std::int64_t site, const auto& factors) {
    if (!batch.dropout_keys.defined()) return full;
    at::Tensor padded_factors = at::ones_like(full);
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto length = static_cast<std::int64_t>(texts.row(i).size());
      const auto begin = texts.offsets[static_cast<std::size_t>(i)];
      const at::Tensor some = factors(batch.dropout_keys.slice(0, begin, begin + length), site);
      at::Tensor place = padded_factors[i];
      for (std::int64_t axis = 0; axis < some.dim(); ++axis) place = place.slice(axis, 0, some.size(axis));
      place.copy_(some);
    }
    return full * padded_factors;
  };
  const auto drop_rows = [&](const at::Tensor& rows, std::int64_t site) {
    return drop(rows, site, [&](const at::Tensor& keys, std::int64_t which) {
      return row_factors(o.dropout, keys, o.width, which);
    });
  };
  Padded result;
  at::Tensor x = at::embedding(parameters["token_embedding"], ids) +
                 parameters["position_embedding"].slice(0, 0, longest);
  for (std::int64_t b = 0; b < o.blocks; ++b) {
    const auto weight = [&](const char* part) {
      return parameters["block" + std::to_string(b) + "_" + part];
    };
    const auto parts = at::linear(x, weight("query_key_value")).chunk(3, -1);
    const auto heads = [&](const at::Tensor& part) {
      return part.reshape({samples, longest, o.heads, head_width}).transpose(1, 2);
    };
    const at::Tensor scores = at::matmul(heads(parts[0]), heads(parts[1]).transpose(2, 3)) /
                              std::sqrt(static_cast<double>(head_width));
    result.probabilities.push_back(
        at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1));
    const at::Tensor dropped_probabilities =
        drop(result.probabilities.back(), 4 * b, [&](const at::Tensor& keys, std::int64_t which) {
          return probability_factors(o.dropout, keys, o.heads, which);
        });
    const at::Tensor mixed = at::matmul(dropped_probabilities, heads(parts[2]))
                                 .transpose(1, 2)
                                 .reshape({samples, longest, o.width});
    x = at::layer_norm(x + drop_rows(at::linear(mixed, weight("output")), 4 * b + 1), {o.width},
                       weight("attention_norm"));
    x = at::layer_norm(
        x + drop_rows(at::linear(at::gelu(at::linear(x, weight("up"))), weight("down")), 4 * b + 2),
        {o.width}, weight("mlp_norm"));
  }
  result.logits = at::linear(x.select(1, 0), parameters["head"]);
  return result;
}

TEST(Encoder, PackedEqualsPadded) {
  const TokenSet texts = small_texts(ragged, 23);
  for (const double dropout : {0.0, 0.25}) {
    auto network = wide_encoder(small_encoder(dropout));
    const am::Batch batch = dropout > 0 ? am::pack(texts, all_rows(texts), am::DropoutPlace{5, 1})
                                        : am::pack(texts, all_rows(texts));
    EXPECT_LE(distance(network.logits(batch), padded(network, texts, batch).logits), 1e-12);
    const auto gradients = loss_gradients(network, batch);
    network.zero_grad();
    am::summed_loss(padded(network, texts, batch).logits, batch.labels).backward();
    std::map<std::string, at::Tensor> expected;
    for (const auto& parameter : network.named_parameters())
      expected[parameter.key()] = parameter.value().grad();
    expect_close(gradients, expected, 1e-12);
  }
}

TEST(Encoder, FirstTokenEqualsAllTokens) {
  const TokenSet texts = small_texts(ragged, 23);
  for (const double dropout : {0.0, 0.25})
    for (const std::int64_t blocks : {1, 2}) {
      am::EncoderOptions options = small_encoder(dropout);
      options.blocks = blocks;
      auto first = wide_encoder(options);
      options.last_block = am::LastBlock::all_tokens;
      auto all = wide_encoder(options);
      const am::Batch batch = am::pack(texts, all_rows(texts), am::DropoutPlace{5, 1});
      EXPECT_LE(distance(first.logits(batch), all.logits(batch)), 1e-12);
      expect_close(loss_gradients(first, batch), loss_gradients(all, batch), 1e-12);
    }
}

TEST(Encoder, KindsOfAttentionAgree) {
  const TokenSet texts = small_texts(ragged, 23);
  const am::Batch batch = am::pack(texts, all_rows(texts), am::DropoutPlace{5, 1});
  am::EncoderOptions options = small_encoder(0.25);
  options.attention = am::AttentionKind::plain;
  am::EncoderClassifier plain(options, 3);
  options.attention = am::AttentionKind::automatic;
  am::EncoderClassifier automatic(options, 3);
  EXPECT_LE(distance(automatic.logits(batch), plain.logits(batch)), 1e-5);
  expect_close(loss_gradients(automatic, batch), loss_gradients(plain, batch), 1e-5);
}

// What a sample contributes does not depend on its company, dropout included: any number of processes may share
// a batch.
TEST(Encoder, SamplesDoNotSeeEachOther) {
  const TokenSet texts = small_texts(ragged, 23);
  auto network = wide_encoder(small_encoder(0.25));
  const am::DropoutPlace place{5, 1};
  const am::Batch whole = am::pack(texts, all_rows(texts), place);
  const at::Tensor logits = network.logits(whole);
  const auto expected = loss_gradients(network, whole);
  std::map<std::string, at::Tensor> sums;
  for (const std::int64_t row : all_rows(texts)) {
    const std::vector<std::int64_t> one{row};
    const am::Batch alone = am::pack(texts, one, place, row);
    EXPECT_LE(distance(network.logits(alone)[0], logits[row]), 1e-12) << row;
    for (const auto& [name, gradient] : loss_gradients(network, alone))
      sums[name] = sums.contains(name) ? sums[name] + gradient : gradient;
  }
  expect_close(sums, expected, 1e-12);
  // Dropout does something, and each step something else.
  const am::Batch without = am::pack(texts, all_rows(texts));
  const am::Batch later = am::pack(texts, all_rows(texts), am::DropoutPlace{5, 2});
  EXPECT_GT(distance(network.logits(without), logits), 1e-3);
  EXPECT_GT(distance(network.logits(later), logits), 1e-3);
}

// Filler makes the rows a multiple of something; logits and gradients are those without it.
TEST(Encoder, FillerChangesNothing) {
  const TokenSet texts = small_texts(ragged, 23);
  const auto rows = all_rows(texts);
  for (const auto last_block : {am::LastBlock::first_token, am::LastBlock::all_tokens}) {
    am::EncoderOptions options = small_encoder(0.3);
    options.last_block = last_block;
    const auto answers = [&](std::int64_t multiple) {
      am::EncoderClassifier network = wide_encoder(options);
      const am::Batch batch = am::pack(texts, rows, am::DropoutPlace{4, 2}, 0, multiple);
      EXPECT_EQ(batch.rows() % multiple, 0);
      EXPECT_EQ(batch.samples(), texts.rows());
      EXPECT_EQ(batch.sequences(), texts.rows() + (multiple > 1 ? 1 : 0));
      const at::Tensor logits = network.logits(batch);
      am::summed_loss(logits, batch.labels).backward();
      std::vector<at::Tensor> result{logits.detach()};
      for (const at::Tensor& parameter : network.parameters()) result.push_back(parameter.grad());
      return result;
    };
    const auto without = answers(1), with = answers(8);
    for (std::size_t i = 0; i < with.size(); ++i)
      EXPECT_TRUE(at::allclose(with[i], without[i], 1e-12, 1e-14)) << "tensor " << i;
  }
}

TEST(Encoder, ShowsTheProbabilitiesItComputesWith) {
  const TokenSet texts = small_texts({7}, 23);
  am::EncoderClassifier network(small_encoder(0.25), 3);
  am::Batch batch = am::pack(texts, all_rows(texts), am::DropoutPlace{5, 1});
  const auto maps = network.attention_maps(batch);
  const auto expected = padded(network, texts).probabilities;
  ASSERT_EQ(maps.size(), 2U);
  for (std::size_t b = 0; b < maps.size(); ++b) {
    EXPECT_EQ(maps[b].sizes(), at::IntArrayRef({3, 7, 7}));
    EXPECT_LE(distance(maps[b], expected[b][0]), 1e-5);
    EXPECT_FALSE(maps[b].requires_grad());
  }
  const TokenSet two = small_texts({2, 3}, 23);
  EXPECT_EQ(refusal([&] { network.attention_maps(am::pack(two, all_rows(two))); }),
            "a batch of 2 samples has no one attention map");
}

// Of many texts at once what attention_maps() and logits() have of each, also beside filler.
TEST(Encoder, ShowsWhereItsAnswersLook) {
  const TokenSet texts = small_texts({7, 1, 4}, 23);
  for (const am::LastBlock last : {am::LastBlock::first_token, am::LastBlock::all_tokens}) {
    am::EncoderOptions options = small_encoder(0.25);
    options.last_block = last;
    am::EncoderClassifier network(options, 3);
    const am::Batch batch = am::pack(texts, all_rows(texts), am::DropoutPlace{5, 1}, 0, 8);
    const auto answer = network.answering_attention(batch);
    ASSERT_EQ(answer.probabilities.size(), 3U);
    EXPECT_FALSE(answer.logits.requires_grad());
    for (std::int64_t r = 0; r < 3; ++r) {
      const am::Batch one = am::pack(texts, std::vector<std::int64_t>{r});
      const auto& shown = answer.probabilities[static_cast<std::size_t>(r)];
      EXPECT_LE(distance(shown, network.attention_maps(one).back().select(1, 0)), 1e-6);
      EXPECT_LE(distance(answer.logits[r], network.logits(one)[0]), 1e-6);
    }
  }
}

TEST(Encoder, ProjectionsAreViewsOfTheWeights) {
  am::EncoderClassifier network(small_encoder(), 3);
  const auto projections = network.projections();
  ASSERT_EQ(projections.size(), 6U);
  const at::Tensor weight = network.named_parameters()["block1_query_key_value"];
  std::string maps;
  for (const am::Projection& projection : projections) maps += projection.map;
  EXPECT_EQ(maps, "KQVKQV");
  const std::map<char, std::int64_t> place{{'Q', 0}, {'K', 1}, {'V', 2}};
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(projections[i].block, 1);
    EXPECT_EQ(projections[i].weight.data_ptr(),
              weight.data_ptr<float>() + place.at(projections[i].map) * 12 * 12);
    EXPECT_EQ(projections[i].weight.sizes(), at::IntArrayRef({12, 12}));
  }
}

// ---- initial weights
// ----------------------------------------------------------------------------------------------------

// sqrt(n) times the largest distance between the distribution of the numbers and `cdf`: above 2 once in 1500 times.
template <class Cdf>
double kolmogorov(const at::Tensor& numbers, const Cdf& cdf) {
  const at::Tensor sorted = std::get<0>(numbers.detach().flatten().to(at::kDouble).sort());
  const auto n = static_cast<double>(sorted.numel());
  const double* const x = sorted.data_ptr<double>();
  double largest = 0;
  for (std::int64_t i = 0; i < sorted.numel(); ++i) {
    const auto below = static_cast<double>(i) / n;
    largest = std::max({largest, std::abs(cdf(x[i]) - below), std::abs(cdf(x[i]) - below - 1 / n)});
  }
  return largest * std::sqrt(n);
}

void expect_normal(const at::Tensor& numbers, const std::string& name) {
  const auto n = static_cast<double>(numbers.numel());
  EXPECT_NEAR(numbers.mean().item<double>(), 0, 5 / std::sqrt(n)) << name;
  EXPECT_NEAR(numbers.var().item<double>(), 1, 5 * std::sqrt(2 / n)) << name;
  EXPECT_LE(kolmogorov(numbers, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }), 2) << name;
}

void expect_uniform(const at::Tensor& numbers, std::int64_t inputs, const std::string& name) {
  const auto n = static_cast<double>(numbers.numel());
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  EXPECT_NEAR(numbers.mean().item<double>(), 0, 5 * bound / std::sqrt(3 * n)) << name;
  EXPECT_NEAR(numbers.var().item<double>(), bound * bound / 3, 5 * bound * bound * std::sqrt(4 / (45 * n)))
      << name;
  EXPECT_LE(numbers.abs().max().item<double>(), bound * (1 + 1e-7)) << name;
  EXPECT_GE(numbers.abs().max().item<double>(), bound * (1 - 20 / n)) << name;
  EXPECT_LE(kolmogorov(numbers, [&](double x) { return (x / bound + 1) / 2; }), 2) << name;
}

TEST(Encoder, StartsFromTheDistributionsOfPytorch) {
  am::EncoderOptions options = small_encoder();
  options.vocabulary = 300;
  options.length = 50;
  options.width = 64;
  options.heads = 4;
  options.hidden = 0;
  const am::EncoderClassifier network(options, 7), same(options, 7), other(options, 8), empty(options, {});
  for (const auto& parameter : network.named_parameters()) {
    const std::string& name = parameter.key();
    const at::Tensor value = parameter.value();
    EXPECT_TRUE(value.requires_grad()) << name;
    EXPECT_TRUE(same_bits(value, same.named_parameters()[name])) << name;
    if (name.ends_with("norm")) {
      EXPECT_TRUE(value.eq(1).all().item<bool>()) << name;
      continue;
    }
    EXPECT_TRUE(empty.named_parameters()[name].eq(0).all().item<bool>()) << name;
    EXPECT_LT(value.eq(other.named_parameters()[name]).to(at::kDouble).mean().item<double>(), 0.01) << name;
    if (name.ends_with("embedding"))
      expect_normal(value, name);
    else
      expect_uniform(value, name.ends_with("down") ? 256 : 64, name);
  }
  options.embedding_deviation = 0.25;
  const am::EncoderClassifier smaller(options, 7);
  EXPECT_LE(distance(4 * smaller.named_parameters()["token_embedding"],
                     network.named_parameters()["token_embedding"]),
            1e-6);
  EXPECT_TRUE(same_bits(smaller.named_parameters()["head"], network.named_parameters()["head"]));
  // Parameters of one shape have numbers of their own.
  const auto parameters = network.named_parameters();
  EXPECT_LT(parameters["block0_output"].eq(parameters["block1_output"]).sum().item<std::int64_t>(), 10);
}

// ---- options, losses
// ----------------------------------------------------------------------------------------------------

TEST(Encoder, RefusesOptionsThatMakeNoSense) {
  const auto message = [](const auto& change) {
    am::EncoderOptions options;
    change(options);
    return refusal([&] { options.validate(); });
  };
  using Options = am::EncoderOptions;
  EXPECT_EQ(message([](Options& o) { o.vocabulary = 0; }), "vocabulary is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.length = -1; }), "length is -1: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.length = 1 << 21; }), "length is 2097152: expected at most 1048576");
  EXPECT_EQ(message([](Options& o) { o.width = 0; }), "width is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.blocks = 0; }), "blocks is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.heads = 0; }), "heads is 0: expected at least 1");
  EXPECT_EQ(message([](Options& o) { o.heads = 5; }), "heads is 5: expected a divisor of width, 384");
  EXPECT_EQ(message([](Options& o) { o.width = o.heads = 8192; }), "heads is 8192: expected at most 4096");
  EXPECT_EQ(message([](Options& o) { o.hidden = -4; }), "hidden is -4: expected at least 0");
  EXPECT_EQ(message([](Options& o) { o.dropout = 1; }), "dropout is 1: expected at least 0 and below 1");
  EXPECT_EQ(message([](Options& o) { o.dropout = std::nan(""); }),
            "dropout is nan: expected at least 0 and below 1");
  EXPECT_EQ(message([](Options& o) { o.embedding_deviation = -1; }),
            "embedding_deviation is -1: expected a finite number, at least 0");
  EXPECT_EQ(message([](Options&) {}), "nothing was thrown");
}

TEST(Encoder, CountsItsOperations) {
  // Width 2, hidden 3, one block, one text of 5 tokens. A multiplication and an addition per weight and row: Q, K, V
  // and O have 4 weights each, A and B 6 each, so 2 * 28 * 5 = 280. Scores: 5 x 5 products of 2 numbers, 100; mixing
  // the same. The head: 2 weights, 4. Backward twice the forward.
  am::EncoderOptions options = small_encoder();
  options.width = 2;
  options.hidden = 3;
  options.heads = 1;
  options.blocks = 1;
  const am::EncoderClassifier network(options, 1);
  const std::vector<std::int64_t> one{5}, two{5, 1};
  EXPECT_EQ(network.training_flops(one), 3 * (280 + 100 + 100 + 4));
  EXPECT_EQ(network.training_flops(two), 3 * (280 + 200 + 4) + 3 * (56 + 8 + 4));
}

TEST(Encoder, ComputesInBfloat16) {
  const TokenSet texts = small_texts(ragged, 23);
  const am::Batch batch = am::pack(texts, all_rows(texts));
  am::EncoderClassifier exact(small_encoder(), 3), brief(small_encoder(), 3, at::kBFloat16);
  const at::Tensor logits = brief.logits(batch);
  EXPECT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_LE(distance(logits, exact.logits(batch)), 0.03);
  for (const auto& [name, gradient] : loss_gradients(brief, batch)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat) << name;
    EXPECT_LE(distance(gradient, loss_gradients(exact, batch).at(name)), 0.1) << name;
  }
}

TEST(Network, LossesAreSumsOverSamples) {
  const at::Tensor yes_or_no = at::tensor({2.0, -1.0, 0.5}, at::kDouble).view({3, 1});
  const at::Tensor labels = at::tensor({1, 1, 0}, at::kLong);
  const double expected = std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0)) + std::log1p(std::exp(0.5));
  EXPECT_NEAR(am::summed_loss(yes_or_no, labels).item<double>(), expected, 1e-14);
  EXPECT_TRUE(at::equal(am::correct(yes_or_no, labels), at::tensor({1, 0, 0}, at::kLong)));
  const at::Tensor classes = at::tensor({1.0, 3.0, 2.0, 0.0, 0.0, 5.0}, at::kDouble).view({2, 3});
  const at::Tensor names = at::tensor({1, 0}, at::kLong);
  const double both =
      std::log(std::exp(1.0) + std::exp(3.0) + std::exp(2.0)) - 3 + std::log(2 + std::exp(5.0));
  EXPECT_NEAR(am::summed_loss(classes, names).item<double>(), both, 1e-14);
  EXPECT_TRUE(at::equal(am::correct(classes, names), at::tensor({1, 0}, at::kLong)));
}

}  // namespace
}  // namespace attmirror::deep_tests
