#include <attmirror/base/error.hpp>
#include <attmirror/data/selection.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

void Selection::validate(const Dataset& data) const {
  if (static_cast<std::ptrdiff_t>(tokens.size()) != data.total_queries()) {
    throw bad_input(fmt::format("selected has {} tokens: expected {}, one per {}", tokens.size(),
                                data.total_queries(), data.one_query_each() ? "sequence" : "query"));
  }
  for (std::size_t j = 0; j < tokens.size(); ++j) {
    const auto query = static_cast<std::ptrdiff_t>(j);
    const std::ptrdiff_t i = data.sequence_of(query), length = data.length(i);
    if (tokens[j] < 0 || tokens[j] >= length) {
      throw bad_input(fmt::format("selected[{}] is {}: expected 0 to {}, a token of sequence {}", j,
                                  tokens[j], length - 1, i));
    }
    if (!data.allows(query, tokens[j]))
      throw bad_input(
          fmt::format("selected[{}] is {}: the mask forbids this token of sequence {}", j, tokens[j], i));
  }
}

std::string to_string(const Selection& selection) {
  return fmt::format("({})", fmt::join(selection.tokens, ", "));
}

}  // namespace attmirror
