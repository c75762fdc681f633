// The fingerprint of a Dataset, in the order in which its parts are added. Internal.
#pragma once

#include <attmirror/base/fingerprint.hpp>
#include <attmirror/data/dataset.hpp>

namespace attmirror {

// Data as simple as the papers' (one query each, no mask) have the fingerprint of tokens, queries, labels and
// decoder alone.
template <class AddTokens, class AddQueries>
std::uint64_t Dataset::fingerprint_with(AddTokens add_tokens, AddQueries add_queries) const {
  Fingerprint print;
  for (const std::ptrdiff_t offset : offsets_) print.add(offset);
  add_tokens(print);
  add_queries(print);
  for (const double label : labels_) print.add(label);
  print.add(decoder_.view().eigen());
  if (!one_query_each())
    for (const std::ptrdiff_t offset : query_offsets_) print.add(offset);
  if (mask_ != Mask::none)
    for (std::ptrdiff_t j = 0; j < total_queries(); ++j)
      for (std::ptrdiff_t t = 0; t < length(sequence_of(j)); ++t) print.add(std::ptrdiff_t{allows(j, t)});
  if (head_.view().rows > 0) print.add(head_.view().eigen());
  return print.value();
}

}  // namespace attmirror
