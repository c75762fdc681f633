// A point of a regularisation path as JSON, as metrics.jsonl and the command's answer hold it. Internal.
#pragma once

#include "base/json.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/descent/regularization_path.hpp>

namespace attmirror {

inline Json point_json(const PathPoint& point, const Dataset& data) {
  const std::int64_t queries_each = data.equal_query_counts() ? data.query_count(0) : 0;
  return {{"radius", point.radius},
          {"decoder_radius", point.decoder_radius},
          {"status", to_string(point.status)},
          {"loss", finite_or_null(point.loss)},
          {"log_loss", finite_or_null(point.log_loss)},
          {"max_softmax", finite_or_null(point.max_softmax)},
          {"gap", finite_or_null(point.gap)},
          {"evaluations", point.evaluations},
          {"start", point.start},
          {"selected", selection_json(point.selected, queries_each)}};
}

}  // namespace attmirror
