#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/review_score.hpp>
#include <attmirror/report/token_maps.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

// Reviews at once. A few thousand tokens keep a core busy, and what they take fits into its cache.
constexpr std::ptrdiff_t batch_reviews = 8;

// Batches are divided among our threads, so that results do not depend on their number: LibTorch gets one thread in
// each.
class OneTorchThread {
 public:
  OneTorchThread() : before_(at::get_num_threads()) {}
  ~OneTorchThread() { at::set_num_threads(before_); }
  OneTorchThread(const OneTorchThread&) = delete;
  OneTorchThread& operator=(const OneTorchThread&) = delete;

  // In each thread that computes.
  static void enter() { at::set_num_threads(1); }

 private:
  int before_;
};

// The mean over heads of [heads, rows].
std::vector<double> mean_over_heads(const at::Tensor& probabilities) {
  const at::Tensor mean = probabilities.to(at::kCPU, at::kDouble).mean(0).contiguous();
  return {mean.data_ptr<double>(), mean.data_ptr<double>() + mean.numel()};
}

std::vector<ReviewScore> batch_scores(const TextModel& model, const WordPiece& vocabulary,
                                      const TokenSet& reviews, std::span<const ReviewWords> chosen) {
  std::vector<std::int64_t> rows;
  for (const ReviewWords& review : chosen) rows.push_back(review.row);
  const Batch batch = pack(reviews, rows).to(model.network->parameters().front().device());
  const Transformer::AnsweringAttention answer = model.network->answering_attention(batch);
  const at::Tensor yes = at::sigmoid(answer.logits.to(at::kCPU, at::kDouble)).contiguous();
  std::vector<ReviewScore> scores;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<double> attention = mean_over_heads(answer.probabilities[i]);
    const double probability = yes.data_ptr<double>()[i];
    if (!std::isfinite(probability) ||
        !std::ranges::all_of(attention, [](double a) { return std::isfinite(a); }))
      throw bad_input(
          fmt::format("{} answers with numbers that are not finite: its training diverged", model.name));
    ReviewScore score = review_score(vocabulary, reviews.row(rows[i]), chosen[i].places, attention);
    score.row = rows[i];
    score.probability = probability;
    score.correct = (probability > 0.5) == (reviews.labels[static_cast<std::size_t>(rows[i])] == 1);
    scores.push_back(score);
  }
  return scores;
}

template <class Value>
ScoreMean review_mean(std::span<const ReviewScore> reviews, const Value& value) {
  std::vector<double> numbers;
  for (const ReviewScore& review : reviews) numbers.push_back(value(review));
  return mean_of(numbers);
}

}  // namespace

ReviewScore review_score(const WordPiece& vocabulary, std::span<const std::int32_t> tokens,
                         std::span<const std::size_t> places, std::span<const double> attention) {
  if (attention.size() != tokens.size())
    throw bad_input(fmt::format("attention has {} numbers: expected {}, one for each token", attention.size(),
                                tokens.size()));
  if (places.empty()) throw bad_input("places is empty: expected those of the listed words");
  for (const std::size_t place : places)
    if (place >= tokens.size())
      throw bad_input(
          fmt::format("places has {}: expected less than {}, the number of tokens", place, tokens.size()));
  ReviewScore score;
  score.tokens_attended = effective_count(attention);
  const std::vector<double> scaled = min_max({attention.begin(), attention.end()});
  double listed = 0, all = 0;
  for (const std::size_t place : places) {
    score.score += scaled[place] / static_cast<double>(places.size());
    listed += attention[place];
  }
  std::size_t words = 0, top = tokens.size();
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] == vocabulary.classifier() || tokens[t] == vocabulary.separator()) continue;
    ++words;
    all += attention[t];
    if (top == tokens.size() || attention[t] > attention[top]) top = t;
  }
  score.top = std::ranges::find(places, top) != places.end();
  score.share = all > 0 ? listed / all : 0;
  score.token_share = static_cast<double>(places.size()) / static_cast<double>(words);
  score.lift = score.share / score.token_share;
  return score;
}

ModelReviews review_scores(const TextModel& model, const WordPiece& vocabulary, const TokenSet& reviews,
                           std::span<const ReviewWords> chosen, const ReviewScoreOptions& options) {
  check_vocabulary(model, vocabulary, "the vocabulary");
  if (chosen.empty()) throw bad_input("there are no reviews to score");
  if (reviews.length > model.network->options().length)
    throw bad_input(fmt::format("the reviews have up to {} tokens, and {} has {} places: cut them",
                                reviews.length, model.name, model.network->options().length));
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", options.threads, ThreadPool::max_threads));
  ModelReviews result;
  result.model = model.name;
  result.reviews.resize(chosen.size());
  const Chunking batches{.total = std::ssize(chosen),
                         .count = (std::ssize(chosen) + batch_reviews - 1) / batch_reviews,
                         .size = batch_reviews};
  std::mutex mutex;
  std::int64_t done = 0;
  const OneTorchThread one_each;
  ThreadPool pool(options.threads);
  pool.run(batches.count, [&](std::ptrdiff_t b) {
    OneTorchThread::enter();
    const std::ptrdiff_t begin = batches.begin(b), count = batches.end(b) - begin;
    const auto scores =
        batch_scores(model, vocabulary, reviews,
                     chosen.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
    std::ranges::copy(scores, result.reviews.begin() + begin);
    const std::lock_guard lock(mutex);
    done += count;
    if (options.on_progress) options.on_progress(done);
  });
  using R = ReviewScore;
  result.score = review_mean(result.reviews, [](const R& one) { return one.score; });
  result.lift = review_mean(result.reviews, [](const R& one) { return one.lift; });
  result.top = review_mean(result.reviews, [](const R& one) { return one.top ? 1.0 : 0.0; });
  result.share = review_mean(result.reviews, [](const R& one) { return one.share; });
  result.token_share = review_mean(result.reviews, [](const R& one) { return one.token_share; });
  result.tokens_attended = review_mean(result.reviews, [](const R& one) { return one.tokens_attended; });
  result.correct = std::ranges::count(result.reviews, true, &R::correct);
  return result;
}

std::vector<ScorePair> score_pairs(std::span<const ModelReviews> scores) {
  using Numbers = std::vector<std::optional<double>>;
  std::vector<Numbers> published, words;
  for (const ModelReviews& model : scores) {
    if (!std::ranges::equal(model.reviews, scores.front().reviews, {}, &ReviewScore::row, &ReviewScore::row))
      throw bad_input(fmt::format("{} and {} have scored different reviews: expected the same",
                                  scores.front().model, model.model));
    Numbers& score = published.emplace_back();
    Numbers& lift = words.emplace_back();
    for (const ReviewScore& one : model.reviews) {
      score.emplace_back(one.score);
      lift.emplace_back(one.lift);
    }
  }
  return all_pairs(published, words);
}

}  // namespace attmirror::deep
