// Where training starts. Every random number has an explicit seed (the papers seeded their data but not their
// weights).
#pragma once

#include <attmirror/attention/attention.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attmirror {

// Where a run starts.
enum class InitKind {
  zero,
  normal,   // N(0, std^2) entries: P1's Setting A with std = 1
  uniform,  // U(-1/sqrt(d), 1/sqrt(d)): what nn.Linear starts from in P3
};

// The attention's blocks start as `kind` says; v starts as the dataset's decoder, or as 0 if there is none.
// Blocks that are not empty in `given` replace both.
struct Initialization {
  InitKind kind = InitKind::zero;
  double std = 1;          // of `normal`
  std::uint64_t seed = 0;  // of `normal` and `uniform`
  Parameters given{};

  void validate() const;
};

// Reads zero, uniform, normal or normal:STD, and `seed` if one was given. Throws Error (bad input) for
// another word (`others` adds to the list in the message: ", file:W0.npy") and for a seed given with zeros.
Initialization parse_initialization(const std::string& word, std::optional<std::uint64_t> seed,
                                    std::string_view others = "");

// The word for it: "zero", "normal:0.1", "uniform".
std::string init_word(const Initialization& initialization);

// Throws Error (bad input) when a given block does not fit the model, or when (K,Q) would start at K = Q = 0,
// a stationary point from which nothing moves.
Parameters initial_parameters(const Attention& model, const Initialization& initialization);

}  // namespace attmirror
