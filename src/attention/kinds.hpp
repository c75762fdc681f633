// The closed sets of this room, losses, heads and parameterizations, are variants. Here is what is done with each
// kind that a variant may hold, and the form that kernels know it by: an enum of their own (block_kernels.hpp), since
// they see no variants. Internal.
//
// A new kind without its name, its form, its formulas or its place among them does not compile.
#pragma once

#include "attention/block_kernels.hpp"
#include <attmirror/attention/head.hpp>
#include <attmirror/attention/loss.hpp>
#include <attmirror/attention/parameters.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace attmirror {

kernels::LossForm loss_form(const Loss& loss);
kernels::HeadForm head_form(const Head& head);
kernels::LogitForm logit_form(const Parameterization& parameterization);

// A kind of a variant, for functions that have an overload for each.
template <class T>
using Kind = std::type_identity<T>;

template <class... Kinds, class Use>
constexpr void for_each_kind(Kind<std::variant<Kinds...>>, Use use) {
  (use(Kind<Kinds>{}), ...);
}

// The words of all kinds that have one, in the variant's order: a class of the user's own has none.
template <class T>
concept HasWord = requires {
  { T::word } -> std::convertible_to<std::string_view>;
};

template <class Variant>
std::vector<std::string_view> words_of() {
  std::vector<std::string_view> words;
  for_each_kind(Kind<Variant>{}, [&]<class T>(Kind<T>) {
    if constexpr (HasWord<T>) words.push_back(T::word);
  });
  return words;
}

// The form of what a variant holds, where `form_of` has a form for each kind.
template <class FormOf, class Variant>
auto form_in(FormOf form_of, const Variant& held) {
  return std::visit([&]<class T>(const T&) { return form_of(Kind<T>{}); }, held);
}

// Whether each form up to `last` is that of exactly one kind.
template <class Variant, class FormOf, auto last>
consteval bool one_form_each() {
  int kinds[static_cast<std::size_t>(last) + 1] = {};
  for_each_kind(Kind<Variant>{}, [&](auto kind) { ++kinds[static_cast<std::size_t>(FormOf{}(kind))]; });
  return std::ranges::all_of(kinds, [](int count) { return count == 1; });
}

}  // namespace attmirror
