#include <attmirror/base/error.hpp>
#include <attmirror/data/selection.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

void Selection::validate(const Dataset& data) const {
  if (static_cast<std::ptrdiff_t>(tokens.size()) != data.samples()) {
    throw bad_input(
        fmt::format("selected has {} tokens: expected {}, one per sequence", tokens.size(), data.samples()));
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::ptrdiff_t length = data.length(static_cast<std::ptrdiff_t>(i));
    if (tokens[i] < 0 || tokens[i] >= length) {
      throw bad_input(fmt::format("selected[{}] is {}: expected 0 to {}, a token of sequence {}", i,
                                  tokens[i], length - 1, i));
    }
  }
}

std::string to_string(const Selection& selection) {
  return fmt::format("({})", fmt::join(selection.tokens, ", "));
}

}  // namespace attmirror
