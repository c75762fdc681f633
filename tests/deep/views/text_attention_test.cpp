#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "support/files.hpp"
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

using deep::AttentionRows;

deep::TextModel model(std::uint64_t seed, const ExampleSize& size = {.sharpness = 5}) {
  return {"model", example_encoder(seed, size)};
}

TEST(TextAttention, IsWhatTheNetworkComputes) {
  const deep::TextModel one = model(3, {.blocks = 3, .heads = 2, .sharpness = 5});
  const auto viewed =
      deep::viewed_pieces(std::span(&one, 1), example_vocabulary(), "The movie was fantastic", "text");
  ASSERT_EQ(viewed.pieces.size(), 6u);
  EXPECT_FALSE(viewed.cut);
  EXPECT_EQ(viewed.pieces[1].piece, "the");
  const deep::TextAttention all = deep::text_attention(one, viewed.pieces, AttentionRows::all);
  EXPECT_EQ(all.blocks, 3);
  EXPECT_EQ(all.heads, 2);
  EXPECT_EQ(all.rows, 6);
  ASSERT_EQ(all.probabilities.size(), 3u * 2 * 6 * 6);
  for (std::size_t row = 0; row < all.probabilities.size(); row += 6) {
    const double sum = std::accumulate(all.probabilities.begin() + static_cast<std::ptrdiff_t>(row),
                                       all.probabilities.begin() + static_cast<std::ptrdiff_t>(row) + 6, 0.0);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  TokenSet tokens;
  for (const TextPiece& piece : viewed.pieces) tokens.ids.push_back(piece.id);
  tokens.offsets = {0, 6};
  tokens.labels = {0};
  tokens.vocabulary = example_vocabulary().size();
  tokens.length = 12;
  const std::int64_t first = 0;
  const deep::Batch batch = deep::pack(tokens, std::span(&first, 1));
  const auto maps = one.network->attention_maps(batch);
  const at::Tensor mean = maps.back().mean(0)[0];
  const std::vector<double> row = all.answering_row();
  for (std::int64_t t = 0; t < 6; ++t)
    EXPECT_NEAR(row[static_cast<std::size_t>(t)], mean[t].item<double>(), 1e-6);
  const double logit = one.network->logits(batch).item<double>();
  EXPECT_NEAR(all.probability, 1 / (1 + std::exp(-logit)), 1e-6);

  const deep::TextAttention few = deep::text_attention(one, viewed.pieces, AttentionRows::first);
  EXPECT_EQ(few.rows, 1);
  EXPECT_EQ(few.probabilities.size(), 3u * 2 * 6);
  EXPECT_EQ(few.answering_row(), row);
}

TEST(TextAttention, CutsToTheShortestLengthAndSaysSo) {
  const std::vector<deep::TextModel> models{model(1, {.length = 12}), model(2, {.length = 5})};
  const auto viewed = deep::viewed_pieces(models, example_vocabulary(), "the movie was fantastic", "text");
  EXPECT_TRUE(viewed.cut);
  EXPECT_EQ(viewed.pieces.size(), 5u);
  EXPECT_EQ(viewed.pieces.back().piece, "fantastic");
  EXPECT_FALSE(deep::viewed_pieces(models, example_vocabulary(), "the movie was", "text").cut);
}

TEST(TextAttention, Refusals) {
  const std::vector<deep::TextModel> models{model(1)};
  for (const char* empty : {"", "  \n "})
    test::expect_bad_input({"text 3 has no words"},
                           [&] { deep::viewed_pieces(models, example_vocabulary(), empty, "text 3"); });
  test::expect_bad_input({"no model"}, [&] { deep::viewed_pieces({}, example_vocabulary(), "the", "text"); });
  const deep::TextModel other{"other", example_encoder(1, {.vocabulary = 1000})};
  test::expect_bad_input({"other", "1000", "vocab.txt", "26"},
                         [&] { deep::check_vocabulary(other, example_vocabulary(), "vocab.txt"); });
  const test::TemporaryFolder folder;
  deep::save_weights(folder / "images.safetensors", *example_vit());
  test::expect_bad_input({"images.safetensors", "vit", "encoder"}, [&] {
    deep::load_text_model(folder / "images.safetensors", example_vocabulary(), "v");
  });
  test::expect_bad_input({"none.safetensors", "No such file"}, [&] {
    deep::load_text_model(folder / "none.safetensors", example_vocabulary(), "v");
  });
  const deep::TextModel broken = model(4);
  {
    const at::NoGradGuard no_gradients;
    broken.network->parameters().front().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  const auto viewed = deep::viewed_pieces(models, example_vocabulary(), "the movie", "text");
  test::expect_bad_input({"model", "not finite"},
                         [&] { deep::text_attention(broken, viewed.pieces, AttentionRows::all); });
}

TEST(TextAttention, EffectiveCount) {
  EXPECT_DOUBLE_EQ(deep::effective_count(std::vector<double>{0.25, 0.25, 0.25, 0.25}), 4);
  EXPECT_DOUBLE_EQ(deep::effective_count(std::vector<double>{1, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(deep::effective_count(std::vector<double>{0, 0}), 0);
  EXPECT_DOUBLE_EQ(deep::effective_count(std::vector<double>{}), 0);
}

TEST(AttentionView, SharesTheRoomOfThePage) {
  const std::vector<deep::TextModel> models{model(1), model(2, {.blocks = 1, .heads = 1})};
  const std::vector<deep::ViewedText> texts{{.text = "the movie was fantastic"},
                                            {.text = "i hated the plot", .label = 0, .pivotal = "hated"},
                                            {.text = "the movie"}};
  const deep::AttentionView all = deep::attention_view(models, example_vocabulary(), texts);
  EXPECT_TRUE(all.notes.empty());
  ASSERT_EQ(all.maps.texts.size(), 3u);
  EXPECT_EQ(all.maps.texts[1].marked, (std::vector<std::size_t>{2}));
  EXPECT_EQ(all.maps.texts[0].models[0].verdict, TokenAttention::Verdict::unknown);
  EXPECT_NE(all.maps.texts[1].models[0].verdict, TokenAttention::Verdict::unknown);
  EXPECT_EQ(all.maps.texts[0].models[0].rows, 6);
  const std::string html = to_html(deep::attention_page(all));
  EXPECT_NE(html.find("class=\"token"), std::string::npos);

  // 6 tokens: 5 maps x 6 numbers a row, 80 bytes; all rows 480.
  const deep::AttentionView some =
      deep::attention_view(models, example_vocabulary(), texts, {.most_bytes = 700});
  ASSERT_EQ(some.maps.texts.size(), 3u);
  EXPECT_EQ(some.answers[0].rows, AttentionRows::all);
  EXPECT_EQ(some.answers[1].rows, AttentionRows::first);
  EXPECT_EQ(some.maps.texts[1].models[0].rows, 1);
  ASSERT_EQ(some.notes.size(), 1u);
  EXPECT_NE(some.notes[0].find("only the row of the first token"), std::string::npos);
  const deep::AttentionView few =
      deep::attention_view(models, example_vocabulary(), texts, {.most_bytes = 100});
  EXPECT_EQ(few.maps.texts.size(), 1u);
  EXPECT_TRUE(few.answers[1].probabilities.empty());
  ASSERT_EQ(few.notes.size(), 2u);
  EXPECT_NE(few.notes[1].find("first 1 of 3 texts"), std::string::npos);
  test::expect_bad_input({"no text"}, [&] { deep::attention_view(models, example_vocabulary(), {}); });
  test::expect_bad_input(
      {"most_bytes"}, [&] { deep::attention_view(models, example_vocabulary(), texts, {.most_bytes = 0}); });
}

}  // namespace
}  // namespace attmirror::view_tests
