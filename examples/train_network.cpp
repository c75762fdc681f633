// A network in LibTorch trained by mirror descent: reviews of twelve words, one of which tells whether it is a good
// one. All optimizers get there, but by other weights: p near 1 leaves most of them near zero and a few large, p = 3
// makes use of all; p = 2 is gradient descent.
#include <attmirror/deep.hpp>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <torch/torch.h>

// Words 0-19 praise, 20-39 complain, the other 160 say nothing. One word of a review is among the first 40.
struct Reviews {
  torch::Tensor words, labels;
};

Reviews write_reviews(std::int64_t count) {
  Reviews reviews;
  reviews.words = torch::randint(40, 200, {count, 12}, torch::kLong);
  const torch::Tensor place = torch::randint(12, {count, 1}, torch::kLong);
  const torch::Tensor word = torch::randint(40, {count, 1}, torch::kLong);
  reviews.words.scatter_(1, place, word);
  reviews.labels = (word < 20).to(torch::kFloat).squeeze(1);
  return reviews;
}

struct Network : torch::nn::Module {
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear key{nullptr}, output{nullptr};
  torch::Tensor query;

  Network() {
    embedding = register_module("embedding", torch::nn::Embedding(200, 32));
    key = register_module("key", torch::nn::Linear(torch::nn::LinearOptions(32, 32).bias(false)));
    output = register_module("output", torch::nn::Linear(32, 1));
    query = register_parameter("query", torch::randn({32}));
    torch::NoGradGuard no_gradients;
    for (torch::Tensor& parameter : parameters())
      parameter.normal_(0, 0.1);  // the space of y has no other scale
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const torch::Tensor tokens = embedding(words);
    const torch::Tensor attention = torch::softmax(torch::matmul(key(tokens), query), 1);
    return output((attention.unsqueeze(2) * tokens).sum(1)).squeeze(1);
  }
};

template <class MakeOptimizer>
void train(const char* name, MakeOptimizer make_optimizer) {
  torch::manual_seed(1);
  Network network;
  const auto optimizer = make_optimizer(network.parameters());
  for (int step = 0; step < 600; ++step) {
    const Reviews batch = write_reviews(64);
    optimizer->zero_grad();
    torch::binary_cross_entropy_with_logits(network.forward(batch.words), batch.labels).backward();
    optimizer->step();
  }

  torch::NoGradGuard no_gradients;
  const Reviews unseen = write_reviews(2000);
  const torch::Tensor logits = network.forward(unseen.words);
  const double loss = torch::binary_cross_entropy_with_logits(logits, unseen.labels).item<double>();
  const double right = ((logits > 0) == (unseen.labels > 0.5)).to(torch::kDouble).mean().item<double>();
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& parameter : network.parameters()) flat.push_back(parameter.flatten());
  const torch::Tensor sizes = torch::cat(flat).abs();
  const double small = (sizes < 0.01 * sizes.max()).to(torch::kDouble).mean().item<double>();
  std::printf("%-24s %8.4f %9.1f%% %12.1f%% %12.3f\n", name, loss, 100 * right, 100 * small,
              sizes.max().item<double>());
}

int main() {
  using attmirror::deep::MirrorDescent, attmirror::deep::MirrorDescentOptions;
  torch::set_num_threads(1);
  std::printf("%-24s %8s %10s %13s %12s\n", "on 2000 unseen reviews:", "loss", "accuracy", "weights below",
              "largest");
  std::printf("%-24s %8s %10s %13s %12s\n", "", "", "", "largest/100", "weight");
  const std::vector<std::pair<double, double>> settings = {{1.1, 0.05}, {2, 0.3}, {3, 0.1}};
  for (const auto& [p, lr] : settings) {
    char name[40];
    std::snprintf(name, sizeof name, "mirror descent, p = %g", p);
    const MirrorDescentOptions options = MirrorDescentOptions(lr).p(p).momentum(0.9);
    train(name, [&](std::vector<torch::Tensor> parameters) {
      return std::make_unique<MirrorDescent>(std::move(parameters), options);
    });
  }
  train("Adam", [](std::vector<torch::Tensor> parameters) {
    return std::make_unique<torch::optim::Adam>(std::move(parameters), torch::optim::AdamOptions(0.01));
  });
}
