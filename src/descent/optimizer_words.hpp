// Optimizers by one word each, for lists of them: "md:1.1,gd,steepest:nuclear,adam:0.95". Internal.
#pragma once

#include "descent/optimizer_fields.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct NamedOptimizer {
  std::string word;   // md:1.1
  std::string title;  // ℓ1.1 mirror descent
  Given given;        // the fields that make it: optimizer, p, normalized
  Optimizer optimizer;
};

// Words are methods of `train --optimizer`, alone or with the one number that matters most: md:P,
// steepest:NORM, adam:BETA2. md alone stands for one optimizer for each of `p`, of p = 2 without any. Mirror
// and gradient descent are normalized, as all the others are by themselves: otherwise they come near their
// limit only after very many steps.
//
// Throws Error (bad input) for other words, with the nearest that is one, for values out of range, for an
// optimizer that is there twice, and for `p` where there is no md without a p of its own.
std::vector<NamedOptimizer> parse_optimizer_words(std::span<const std::string> words,
                                                  std::span<const double> p);

// "ℓ1.75", "ℓ∞", "nuclear", "Schatten-1.5".
std::string norm_symbol(const Norm& norm);

// "a,b,c" apart; a text that is empty has no words.
std::vector<std::string> split_words(std::string_view text);

// Norms of a list such as "1,1.1,inf,nuclear", in which each occurs once. Throws Error (bad input) naming the
// word, with the nearest that is one.
std::vector<Norm> parse_norm_words(std::span<const std::string> words);

}  // namespace attmirror
