#include "base/random.hpp"

#include <attmirror/base/error.hpp>

#include <cmath>
#include <numbers>

#include <Random123/philox.h>

namespace attmirror {
namespace {

// The last word of the counter keeps kinds of draws apart, so that normal(0) and uniform(0) share no bits.
enum class Draw : std::uint32_t { bits = 0, normal = 1 };

// A block has room for two numbers of 64 bits.
std::array<std::uint64_t, 2> block(std::uint64_t seed, RandomStream stream, Draw draw, std::uint64_t number) {
  const std::array<std::uint32_t, 4> words =
      philox_block({static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(draw)},
                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const auto join = [](std::uint32_t low, std::uint32_t high) { return (std::uint64_t{high} << 32) | low; };
  return {join(words[0], words[1]), join(words[2], words[3])};
}

}  // namespace

std::string_view to_string(RandomStream stream) {
  switch (stream) {
    case RandomStream::init_W:
      return "init_W";
    case RandomStream::init_K:
      return "init_K";
    case RandomStream::init_Q:
      return "init_Q";
    case RandomStream::init_prompt:
      return "init_prompt";
    case RandomStream::init_decoder:
      return "init_decoder";
    case RandomStream::lengths:
      return "lengths";
    case RandomStream::selection:
      return "selection";
    case RandomStream::embedding:
      return "embedding";
    case RandomStream::successors:
      return "successors";
    case RandomStream::rankings:
      return "rankings";
    case RandomStream::sentences:
      return "sentences";
    case RandomStream::unseen_sentences:
      return "unseen_sentences";
    case RandomStream::deep_init:
      return "deep_init";
    case RandomStream::deep_order:
      return "deep_order";
    case RandomStream::deep_dropout:
      return "deep_dropout";
    case RandomStream::deep_augment:
      return "deep_augment";
    case RandomStream::init_own:
      return "init_own";
    case RandomStream::attractor_directions:
      return "attractor_directions";
    case RandomStream::attractor_noise:
      return "attractor_noise";
  }
  return "unnamed";
}

std::array<std::uint32_t, 4> philox_block(const std::array<std::uint32_t, 4>& counter,
                                          const std::array<std::uint32_t, 2>& key) {
  const r123::Philox4x32::ctr_type input{{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type secret{{key[0], key[1]}};
  const r123::Philox4x32::ctr_type output = r123::Philox4x32{}(input, secret);
  return {output[0], output[1], output[2], output[3]};
}

std::uint64_t CounterRandom::bits(std::uint64_t index) const {
  return block(seed_, stream_, Draw::bits, index / 2)[index % 2];
}

double CounterRandom::uniform(std::uint64_t index) const {
  return static_cast<double>(bits(index) >> 11) * 0x1p-53;
}

double CounterRandom::uniform_open(std::uint64_t index) const {
  return (static_cast<double>(bits(index) >> 12) + 0.5) * 0x1p-52;
}

// Box-Muller: for u1, u2 uniform, sqrt(-2 log u1) (cos 2 pi u2, sin 2 pi u2) is a pair of independent
// normals. One block gives u1 in (0, 1] and u2, and the two normals of the pair are those of an even index
// and the next.
double CounterRandom::normal(std::uint64_t index) const {
  const auto [first, second] = block(seed_, stream_, Draw::normal, index / 2);
  const double u1 = (static_cast<double>(first >> 11) + 1.0) * 0x1p-53;
  const double u2 = static_cast<double>(second >> 11) * 0x1p-53;
  const double radius = std::sqrt(-2.0 * std::log(u1));
  const double angle = 2.0 * std::numbers::pi * u2;
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// The upper half of bits * limit (Lemire). Not exactly uniform, but off by less than limit / 2^64, which no
// experiment can see; rejection would make the address of a number depend on the ones before it.
std::uint64_t CounterRandom::below(std::uint64_t limit, std::uint64_t index) const {
  if (limit == 0) throw bad_input("limit is 0: expected 1 or more");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits(index)} * limit) >> 64);
}

}  // namespace attmirror
