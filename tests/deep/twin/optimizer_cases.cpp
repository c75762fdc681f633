// attmirror_optimizer_cases FOLDER: writes what attmirror::deep's optimizers make of weights in a number of steps,
// with the gradients of each, for the optimizers in Python to compare with (tests/torch/compare_with_cpp.py).
#include "deep/tensors.hpp"
#include <attmirror/data/safetensors.hpp>
#include <attmirror/deep.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace attmirror::deep_tests {
namespace {

using Make = std::function<std::unique_ptr<am::FusedOptimizer>(const Tensors&)>;

// `options` are those of the class in Python, as JSON.
struct Case {
  std::string name, optimizer, options;
  Make make;
};

Case mirror(std::string name, std::string options, am::MirrorDescentOptions own) {
  return {std::move(name), "MirrorDescent", std::move(options),
          [own](const Tensors& w) { return std::make_unique<am::MirrorDescent>(w, own); }};
}

Case steepest(std::string name, std::string options, am::SteepestDescentOptions own) {
  return {std::move(name), "SteepestDescent", std::move(options),
          [own](const Tensors& w) { return std::make_unique<am::SteepestDescent>(w, own); }};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<std::pair<double, std::string>> every_p = {
      {1.1, "1.1"}, {1.5, "1.5"}, {1.75, "1.75"}, {2, "2"}, {3, "3"}};
  for (const auto& [p, text] : every_p) {
    const auto options = am::MirrorDescentOptions(0.01).p(p);
    const std::string start = R"({"lr": 0.01, "p": )" + text;
    const auto add = [&](const char* name, const char* rest, const am::MirrorDescentOptions& own) {
      all.push_back(mirror(std::string(name) + "_" + text, start + rest + "}", own));
    };
    using Options = am::MirrorDescentOptions;
    add("plain", "", options);
    add("momentum", R"(, "momentum": 0.9)", Options(options).momentum(0.9));
    add("normalized", R"(, "normalized": true)", Options(options).normalized(true));
    add("all",
        R"(, "momentum": 0.9, "nesterov": true, "normalized": true, "weight_decay": 0.1, "maximize": true)",
        Options(options).momentum(0.9).nesterov(true).normalized(true).weight_decay(0.1).maximize(true));
    add("dual", R"(, "dual_state": true)", Options(options).dual_state(am::MasterState::on));
    add("no_dual", R"(, "dual_state": false)", Options(options).dual_state(am::MasterState::off));
  }
  for (const char* norm : {"l1.5", "l2", "l3", "sign"})
    all.push_back(steepest(
        std::string("steepest_") + norm,
        std::string(R"({"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1, "norm": ")") + norm + "\"}",
        am::SteepestDescentOptions(0.01).norm(norm).momentum(0.5).weight_decay(0.1)));
  return all;
}

void write_case(const std::filesystem::path& folder, const Case& c, at::ScalarType type) {
  const std::vector<std::vector<std::int64_t>> shapes = {{7, 5}, {301}, {3, 4, 5}, {1}};
  const int steps = 100;
  Tensors parameters;
  Safetensors file;
  file.metadata = {{"optimizer", c.optimizer}, {"options", c.options}, {"steps", std::to_string(steps)}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    parameters.push_back(leaf(random(shapes[i], 1 + i, type, 0.5)));
    file.tensors.emplace("before " + std::to_string(i), am::to_array(parameters[i]));
  }
  const auto optimizer = c.make(parameters);
  Tensors gradients(shapes.size());
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::uint64_t seed = 100 + shapes.size() * static_cast<std::size_t>(step) + i;
      const at::Tensor g = random(shapes[i], seed, type, 0.05);
      give_gradient(parameters[i], g);
      gradients[i] = step == 0 ? g.unsqueeze(0) : at::cat({gradients[i], g.unsqueeze(0)});
    }
    optimizer->step();
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    file.tensors.emplace("gradients " + std::to_string(i), am::to_array(gradients[i]));
    file.tensors.emplace("after " + std::to_string(i), am::to_array(parameters[i]));
  }
  const std::string type_name = at::toString(type);
  save_safetensors(folder / (c.name + "." + type_name + ".safetensors"), file);
}

}  // namespace
}  // namespace attmirror::deep_tests

int main(int count, char** arguments) {
  using namespace attmirror::deep_tests;
  if (count != 2) {
    std::fputs("usage: attmirror_optimizer_cases FOLDER\n", stderr);
    return 2;
  }
  try {
    std::filesystem::create_directories(arguments[1]);
    for (const Case& c : cases())
      for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf})
        write_case(arguments[1], c, type);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attmirror_optimizer_cases: %s\n", error.what());
    return 1;
  }
  return 0;
}
