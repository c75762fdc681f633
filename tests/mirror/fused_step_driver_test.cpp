// What a fused step promises around its arithmetic: threads, alignment, sizes, norms, checks, formats, messages.
#include "base/half_floats.hpp"
#include "support/element_array.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/mirror/fused_step.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::all_elements;
using test::ElementArray;
using test::gaussian;
using test::infinity;
using test::nan;
using test::state_element;

// Tensors of odd sizes, with all their arrays, at odd addresses.
struct Network {
  std::vector<ElementArray> weights, gradients, masters, momenta;
  std::vector<StepTensor> tensors;

  Network(StepElement element, const std::vector<std::size_t>& sizes, std::size_t offset = 0) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      weights.emplace_back(element, gaussian(sizes[i], 0.1, 2 * i), offset);
      gradients.emplace_back(element, gaussian(sizes[i], 0.01, 2 * i + 1), offset);
      masters.emplace_back(state_element(element), gaussian(sizes[i], 0.1, 2 * i), offset);
      momenta.emplace_back(state_element(element), std::vector<double>(sizes[i]), offset);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i)
      tensors.push_back({weights[i].data(), gradients[i].data(), i % 2 == 0 ? nullptr : masters[i].data(),
                         momenta[i].data(), weights[i].size()});
  }
  bool operator==(const Network& other) const {
    return weights == other.weights && masters == other.masters && momenta == other.momenta;
  }
  bool are_marks_intact() const {
    for (const auto* arrays : {&weights, &gradients, &masters, &momenta})
      for (const ElementArray& array : *arrays)
        if (!array.is_mark_intact()) return false;
    return true;
  }
};

const std::vector<StepOptions>& several_options() {
  static const std::vector<StepOptions> options{
      {.p = 1.1, .rate = 0.01, .normalized = true},
      {.p = 1.75, .rate = 0.01, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1, .normalized = true},
      {.p = 3, .rate = 0.01, .momentum = 0.9, .skip_nonfinite = true},
      {.rule = StepRule::steepest, .p = 2.5, .rate = 0.01},
      {.rule = StepRule::sign, .rate = 0.01, .momentum = 0.5}};
  return options;
}

TEST(FusedStepDriver, SameBitsForAnyNumberOfThreads) {
  std::vector<std::size_t> sizes{0, 1, 40'003, 32768, 7, 32771};
  for (std::size_t i = 0; i < 300; ++i) sizes.push_back(i % 37);  // and hundreds of small ones
  ThreadPool two(2), five(5);
  for (const StepElement element : all_elements)
    for (const StepOptions& options : several_options()) {
      Network alone(element, sizes), with_two(element, sizes), with_five(element, sizes);
      for (int step = 0; step < 2; ++step) {
        fused_step(element, alone.tensors, options);
        fused_step(element, with_two.tensors, options, &two);
        fused_step(element, with_five.tensors, options, &five);
      }
      EXPECT_TRUE(alone == with_two && alone == with_five) << to_string(element) << " p " << options.p;
    }
}

TEST(FusedStepDriver, AlignmentAndSizeDoNotMatter) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= 150; ++size) sizes.push_back(size);
  for (const StepElement element : all_elements)
    for (const StepOptions& options : several_options()) {
      Network aligned(element, sizes);
      fused_step(element, aligned.tensors, options);
      for (const std::size_t offset : {1, 2, 4, 13}) {
        Network moved(element, sizes, offset);
        fused_step(element, moved.tensors, options);
        EXPECT_TRUE(aligned == moved) << to_string(element) << " offset " << offset;
        EXPECT_TRUE(moved.are_marks_intact()) << to_string(element) << " offset " << offset;
      }
    }
  // Where no norm is taken, a number's result does not depend on its place.
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
    const std::vector<double> w = gaussian(500, 0.1, 1), g = gaussian(500, 1, 2);
    ElementArray all(StepElement::float32, w), gradient(StepElement::float32, g);
    StepTensor tensor{all.data(), gradient.data(), nullptr, nullptr, all.size()};
    const StepOptions options{.p = p, .rate = 0.01};
    fused_step(StepElement::float32, {&tensor, 1}, options);
    for (std::size_t i = 0; i < w.size(); ++i) {
      float one = static_cast<float>(w[i]);
      const float slope = static_cast<float>(g[i]);
      tensor = {&one, &slope, nullptr, nullptr, 1};
      fused_step(StepElement::float32, {&tensor, 1}, options);
      EXPECT_EQ(one, all[i]) << p;
    }
  }
}

TEST(FusedStepDriver, SkippedStepsLeaveNoTrace) {
  for (const StepElement element : all_elements)
    for (const double bad : {infinity, -infinity, nan})
      for (StepOptions options : several_options()) {
        options.skip_nonfinite = true;
        const std::vector<std::size_t> sizes{10, 40'001, 0, 1000};
        Network network(element, sizes);
        std::vector<double> gradient = gaussian(40'001, 0.01, 3);
        gradient[36'123] = bad;
        network.gradients[1] = ElementArray(element, gradient);
        network.tensors[1].gradient = network.gradients[1].data();
        const Network before = network;
        const StepReport report = fused_step(element, network.tensors, options);
        EXPECT_TRUE(report.skipped);
        EXPECT_EQ(report.nonfinite_tensor, 1);
        EXPECT_TRUE(network == before) << to_string(element);
      }
}

TEST(FusedStepDriver, AnInfiniteMomentumIsNoReasonToSkip) {
  for (const StepElement element : all_elements)
    for (const double bad : {infinity, nan}) {
      const StepOptions options{.p = 3, .rate = 0.01, .momentum = 0.9, .skip_nonfinite = true};
      ElementArray w(element, {1, 1, 1}), g(element, {1, 2, 3});
      const StepElement state = element == StepElement::float64 ? element : StepElement::float32;
      ElementArray momentum(state, {0, bad, 0});
      const StepTensor tensor{w.data(), g.data(), nullptr, momentum.data(), 3};
      const StepReport report = fused_step(element, {&tensor, 1}, options);
      EXPECT_FALSE(report.skipped) << to_string(element);
      EXPECT_FALSE(std::isfinite(w[1])) << to_string(element);
      EXPECT_LT(w[0], 1) << to_string(element);
      ElementArray infinite(element, {1, infinity, 3});
      const StepTensor wrong{w.data(), infinite.data(), nullptr, momentum.data(), 3};
      EXPECT_TRUE(fused_step(element, {&wrong, 1}, options).skipped) << to_string(element);
    }
}

TEST(FusedStepDriver, NonfiniteGradientsShow) {
  for (const StepElement element : all_elements)
    for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
      ElementArray w(element, {1, 1, 1, -1, 0}), g(element, {nan, infinity, -infinity, infinity, infinity});
      const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, 5};
      EXPECT_FALSE(fused_step(element, {&tensor, 1}, {.p = p, .rate = 0.1}).skipped);
      EXPECT_TRUE(std::isnan(w[0])) << to_string(element) << " p " << p;
      EXPECT_EQ(w[1], -infinity) << to_string(element) << " p " << p;
      EXPECT_EQ(w[2], infinity) << to_string(element) << " p " << p;
      EXPECT_EQ(w[3], -infinity) << to_string(element) << " p " << p;
      EXPECT_EQ(w[4], -infinity) << to_string(element) << " p " << p;
    }
}

// ||d||_q as the step has it: p = 2 and w = 0 leave -rate d/||d||.
TEST(FusedStepDriver, NormsAreRightForTinyAndHugeNumbers) {
  for (const StepElement element : {StepElement::float32, StepElement::float64})
    for (const double scale : {1e-42, 1e-30, 1.0, 1e30, 1e37})
      for (const double p : {1.01, 1.1, 1.5, 1.75, 2.0, 3.0, 10.0}) {
        const std::vector<double> d = gaussian(33'001, scale, 5);
        ElementArray w(element, std::vector<double>(d.size(), 0.0)), g(element, d);
        const double q = p / (p - 1);
        long double largest = 0, sum = 0;
        for (std::size_t i = 0; i < d.size(); ++i) largest = std::max<long double>(largest, std::abs(g[i]));
        for (std::size_t i = 0; i < d.size(); ++i)
          sum += std::pow(std::abs(g[i]) / largest, static_cast<long double>(q));
        const long double norm = largest * std::pow(sum, 1 / static_cast<long double>(q));
        const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, g.size()};
        fused_step(element, {&tensor, 1}, {.p = p, .rate = 0.5, .normalized = true});
        const double tolerance = element == StepElement::float64 ? 1e-13 : 0x1p-23;
        for (std::size_t i = 0; i < d.size(); i += 97) {
          if (g[i] == 0) continue;
          // In the image, and where that is an ordinary float.
          const long double image = -0.5L * g[i] / norm;
          const long double got = std::copysign(
              std::pow(std::abs(static_cast<long double>(w[i])), static_cast<long double>(p) - 1),
              static_cast<long double>(w[i]));
          if (w[i] == 0 || std::abs(w[i]) < 1e-37) continue;
          // w is rounded, and got is its power.
          EXPECT_NEAR(static_cast<double>(got / image), 1, (3 + p) * tolerance) << scale << " p " << p;
        }
      }
}

TEST(FusedStepDriver, ZeroGradientsHaveNoNorm) {
  for (const StepElement element : all_elements) {
    ElementArray w(element, gaussian(100, 1, 1)), g(element, std::vector<double>(100));
    const ElementArray before = w;
    const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, 100};
    for (const StepOptions& options :
         {StepOptions{.p = 1.75, .rate = 1, .normalized = true},
          StepOptions{.rule = StepRule::steepest, .p = 1.1, .rate = 1}, StepOptions{.p = 1.1, .rate = 0}}) {
      EXPECT_FALSE(fused_step(element, {&tensor, 1}, options).skipped);
      EXPECT_TRUE(w == before) << to_string(element);
    }
  }
}

// A hundred steps in doubles against the formula written down in three lines.
TEST(FusedStepDriver, DoublesFollowTheFormula) {
  for (const double p : {1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 10.0})
    for (const bool normalized : {false, true}) {
      const std::vector<double> start = gaussian(301, 0.5, 8);
      std::vector<long double> reference(start.begin(), start.end());
      ElementArray w(StepElement::float64, start);
      for (int step = 0; step < 100; ++step) {
        const std::vector<double> slopes = gaussian(301, 0.1, 100 + static_cast<std::uint64_t>(step));
        ElementArray g(StepElement::float64, slopes);
        const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, w.size()};
        fused_step(StepElement::float64, {&tensor, 1}, {.p = p, .rate = 0.01, .normalized = normalized});

        const long double s = p == 1.1 ? 0.1L : static_cast<long double>(p) - 1, q = 1 + 1 / s;
        long double norm = 0;
        for (const double d : slopes) norm += std::pow(std::abs(static_cast<long double>(d)), q);
        norm = normalized ? std::pow(norm, 1 / q) : 1;
        for (std::size_t i = 0; i < reference.size(); ++i) {
          const long double w_i = reference[i];
          const long double y = std::copysign(std::pow(std::abs(w_i), s), w_i) - 0.01L * slopes[i] / norm;
          reference[i] = std::copysign(std::pow(std::abs(y), 1 / s), y);
        }
      }
      long double difference = 0, size = 0;
      for (std::size_t i = 0; i < reference.size(); ++i) {
        difference += (reference[i] - w[i]) * (reference[i] - w[i]);
        size += reference[i] * reference[i];
      }
      EXPECT_LE(static_cast<double>(std::sqrt(difference / size)), 1e-12) << p;
    }
}

// Every number of 16 bits comes through a step that does not move it, and masters round to the nearest, ties to even.
TEST(FusedStepDriver, SixteenBitFormatsAreReadAndRoundedLikeTheirScalars) {
  for (const StepElement element : {StepElement::bfloat16, StepElement::float16}) {
    std::vector<std::uint16_t> bits(65536), slopes(65536, element == StepElement::bfloat16 ? 0x3f80 : 0x3c00);
    std::vector<float> master(65536);
    const auto widened = [&](std::uint16_t b) {
      return element == StepElement::bfloat16 ? to_float(BFloat16{b}) : to_float(Half{b});
    };
    const auto narrowed = [&](float x) {
      return element == StepElement::bfloat16 ? to_bfloat16(x).bits : to_half(x).bits;
    };
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    StepTensor tensor{bits.data(), slopes.data(), nullptr, nullptr, 65536};
    // w - 2^-149 is w, rounded, for all but the smallest bfloat16.
    const StepOptions options{.p = 2, .rate = 0x1p-149};
    fused_step(element, {&tensor, 1}, options);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float x = widened(static_cast<std::uint16_t>(i));
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(widened(bits[i]))) << i;
      } else if (std::abs(x) > 1e-36f) {
        EXPECT_EQ(bits[i], i);
      }
    }
    // Midpoints, their neighbours, and numbers beyond the largest.
    for (const int above : {-1, 0, 1}) {
      for (std::size_t i = 0; i < bits.size(); ++i) {
        const float x = widened(static_cast<std::uint16_t>(i)),
                    next = widened(static_cast<std::uint16_t>(i + 1));
        const float middle =
            std::isfinite(x) && std::isfinite(next) && (x < 0) == (next < 0) ? 0.5f * (x + next) : x;
        master[i] = above == 0 ? middle : std::nextafter(middle, above < 0 ? -1e38f : 1e38f);
      }
      const std::vector<float> before = master;
      tensor.master = master.data();
      fused_step(element, {&tensor, 1}, {.rule = StepRule::sign, .rate = 0x1p-149});
      for (std::size_t i = 0; i < bits.size(); ++i) {
        if (std::isnan(master[i])) continue;
        EXPECT_EQ(bits[i], narrowed(master[i])) << before[i];
      }
    }
  }
}

std::string message_of(StepElement element, const StepTensor& tensor, const StepOptions& options) {
  const std::vector<StepTensor> tensors{StepTensor{}, tensor};
  try {
    fused_step(element, tensors, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(FusedStepDriver, ErrorsNameWhatIsWrong) {
  float w = 1, g = 1;
  const StepTensor good{&w, &g, nullptr, nullptr, 1};
  const auto options_message = [&](const StepOptions& options) {
    return message_of(StepElement::float32, good, options);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_PRED2(has, options_message({.p = 1}), "p is 1: expected a finite number greater than 1");
  EXPECT_PRED2(has, options_message({.p = nan}), "p is nan");
  EXPECT_PRED2(has, options_message({.p = infinity}), "p is inf");
  EXPECT_PRED2(has, options_message({.rate = -1}), "rate is -1");
  EXPECT_PRED2(has, options_message({.rate = nan}), "rate is nan");
  EXPECT_PRED2(has, options_message({.momentum = 1}), "momentum is 1");
  EXPECT_PRED2(has, options_message({.nesterov = true}), "nesterov needs a momentum");
  EXPECT_PRED2(has, options_message({.rate = 2, .weight_decay = 0.5}), "weight_decay is 0.5 at a rate of 2");
  EXPECT_PRED2(has, options_message({.rule = StepRule::sign, .normalized = true}), "the rule is sign");
  EXPECT_PRED2(has, options_message({.gradient_scale = 0}), "gradient_scale is 0");
  EXPECT_PRED2(has, options_message({.momentum = 0.9}), "tensors[1].momentum is null");
  EXPECT_PRED2(has, message_of(StepElement::float32, {nullptr, &g, nullptr, nullptr, 1}, {}),
               "tensors[1].weights is null");
  EXPECT_PRED2(has, message_of(StepElement::float32, {&w, nullptr, nullptr, nullptr, 1}, {}),
               "tensors[1].gradient is null");
  EXPECT_PRED2(has, message_of(StepElement::float32, {&w, &g, nullptr, nullptr, -3}, {}),
               "tensors[1].size is -3");
  EXPECT_EQ(w, 1) << "nothing is written before the checks";
  EXPECT_EQ(options_message({.rate = 0.5}), "no error");
  EXPECT_EQ(w, 0.5f);
}

}  // namespace
}  // namespace attmirror
