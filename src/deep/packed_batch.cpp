#include "base/random.hpp"
#include "deep/host_tensor.hpp"
#include <attmirror/deep/packed_batch.hpp>

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {
constexpr std::int64_t no_row = -1;  // whose dropout the filler has
}

Batch pack(const TokenSet& tokens, std::span<const std::int64_t> rows, std::optional<DropoutPlace> dropout,
           std::int64_t first_sample, std::int64_t row_multiple) {
  const auto count = static_cast<std::int64_t>(rows.size());
  Batch batch;
  std::vector<std::int64_t> lengths;
  lengths.reserve(rows.size());
  for (const std::int64_t row : rows) {
    lengths.push_back(static_cast<std::int64_t>(tokens.row(row).size()));
    batch.row_count += lengths.back();
    batch.longest = std::max(batch.longest, lengths.back());
  }
  const std::int64_t filler = row_multiple > 1 ? row_multiple - batch.row_count % row_multiple : 0;
  std::vector<std::int64_t> keyed(rows.begin(), rows.end());
  if (filler > 0) {
    keyed.push_back(no_row);
    lengths.push_back(filler);
    batch.row_count += filler;
    batch.longest = std::max(batch.longest, filler);
  }
  batch.tokens = host_tensor(batch.row_count, at::kLong);
  batch.positions = host_tensor(batch.row_count, at::kLong);
  batch.offsets = host_tensor(static_cast<std::int64_t>(lengths.size()) + 1, at::kInt);
  batch.labels = host_tensor(count, at::kLong);
  auto* id = batch.tokens.data_ptr<std::int64_t>();
  auto* place = batch.positions.data_ptr<std::int64_t>();
  auto* offset = batch.offsets.data_ptr<std::int32_t>();
  auto* label = batch.labels.data_ptr<std::int64_t>();
  *offset = 0;
  for (const std::int64_t row : rows) {
    const std::span<const std::int32_t> ids = tokens.row(row);
    id = std::copy(ids.begin(), ids.end(), id);
    for (std::size_t t = 0; t < ids.size(); ++t) *place++ = static_cast<std::int64_t>(t);
    offset[1] = offset[0] + static_cast<std::int32_t>(ids.size());
    ++offset;
    *label++ = tokens.labels[static_cast<std::size_t>(row)];
  }
  if (filler > 0) {
    std::fill_n(id, filler, 0);
    std::fill_n(place, filler, 0);
    offset[1] = offset[0] + static_cast<std::int32_t>(filler);
  }
  if (dropout) {
    batch.dropout_keys = dropout_keys(*dropout, keyed, lengths);
    batch.dropout_seed = CounterRandom(dropout->seed, RandomStream::deep_dropout)
                             .bits(static_cast<std::uint64_t>(dropout->step));
    batch.first_sample = first_sample;
  }
  return batch;
}

}  // namespace attmirror::deep
