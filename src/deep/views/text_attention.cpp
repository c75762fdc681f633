#include <attmirror/base/error.hpp>
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/weights_file.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

void check_vocabulary(const TextModel& model, const WordPiece& vocabulary, std::string_view vocabulary_name) {
  const std::int64_t words = model.network->options().vocabulary;
  if (words != vocabulary.size())
    throw bad_input(
        fmt::format("{} has a vocabulary of {} pieces, and {} has {}: they do not belong together",
                    model.name, words, vocabulary_name, vocabulary.size()));
}

TextModel load_text_model(const std::filesystem::path& path, const WordPiece& vocabulary,
                          std::string_view vocabulary_name) {
  const std::shared_ptr<Network> network = load_network(path);
  TextModel model{path.string(), std::dynamic_pointer_cast<EncoderClassifier>(network)};
  if (!model.network)
    throw bad_input(
        fmt::format("{} holds weights of a network of kind {}: expected one for texts, an encoder",
                    path.string(), network->kind()));
  check_vocabulary(model, vocabulary, vocabulary_name);
  return model;
}

ViewedPieces viewed_pieces(std::span<const TextModel> models, const WordPiece& vocabulary,
                           std::string_view text, std::string_view name) {
  if (models.empty()) throw bad_input("no model is given");
  std::int64_t length = std::numeric_limits<std::int64_t>::max() - 1;
  for (const TextModel& model : models) length = std::min(length, model.network->options().length);
  ViewedPieces result;
  result.pieces = vocabulary.encode_pieces(text, length + 1);
  if (result.pieces.size() <= 2) throw bad_input(fmt::format("{} has no words", name));
  result.cut = std::cmp_greater(result.pieces.size(), length);
  if (result.cut) result.pieces.resize(static_cast<std::size_t>(length));
  return result;
}

TextAttention text_attention(const TextModel& model, std::span<const TextPiece> pieces, AttentionRows rows) {
  TokenSet tokens;
  for (const TextPiece& piece : pieces) tokens.ids.push_back(piece.id);
  tokens.offsets = {0, static_cast<std::int64_t>(pieces.size())};
  tokens.labels = {0};
  tokens.vocabulary = model.network->options().vocabulary;
  tokens.length = model.network->options().length;
  tokens.validate();

  const at::NoGradGuard no_gradients;
  const std::int64_t first = 0;
  const Batch batch = pack(tokens, std::span(&first, 1)).to(model.network->parameters().front().device());
  TextAttention result;
  result.tokens = static_cast<std::int64_t>(pieces.size());
  result.probability = at::sigmoid(model.network->logits(batch)).item<double>();
  const std::vector<at::Tensor> maps = model.network->attention_maps(batch);
  result.blocks = static_cast<std::int64_t>(maps.size());
  result.heads = maps.front().size(0);
  result.rows = rows == AttentionRows::all ? result.tokens : 1;
  for (const at::Tensor& map : maps) {
    const at::Tensor kept = map.narrow(1, 0, result.rows).to(at::kCPU, at::kFloat).contiguous();
    const float* numbers = kept.data_ptr<float>();
    result.probabilities.insert(result.probabilities.end(), numbers, numbers + kept.numel());
  }
  if (!std::isfinite(result.probability) ||
      !std::ranges::all_of(result.probabilities, [](float p) { return std::isfinite(p); }))
    throw bad_input(
        fmt::format("{} answers with numbers that are not finite: its training diverged", model.name));
  return result;
}

std::vector<double> TextAttention::answering_row() const {
  std::vector<double> row(static_cast<std::size_t>(tokens));
  const auto stride = static_cast<std::size_t>(rows * tokens);
  const std::size_t begin = static_cast<std::size_t>((blocks - 1) * heads) * stride;
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h)
    for (std::size_t t = 0; t < row.size(); ++t)
      row[t] += static_cast<double>(probabilities[begin + h * stride + t]) / static_cast<double>(heads);
  return row;
}

double effective_count(std::span<const double> numbers) {
  double sum = 0, squares = 0;
  for (const double number : numbers) {
    sum += std::abs(number);
    squares += number * number;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

}  // namespace attmirror::deep
