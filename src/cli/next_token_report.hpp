// What `attmirror next-token` found, in words and as JSON.
#pragma once

#include "cli/next_token_stages.hpp"
#include <attmirror/next_token/partial_order.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror::cli {

struct NextTokenReport {
  const NextTokenOptions* options = nullptr;
  const Corpus* corpus = nullptr;
  const Embedding* embedding = nullptr;
  const PartialOrders* orders = nullptr;
  const Targets* targets = nullptr;
  bool realizable = true;
  std::vector<StageOutcome> stages;
  std::optional<double> accuracy;                                 // on the training sentences, at the end
  std::vector<std::pair<std::string, double>> unseen_accuracy{};  // by name
  std::optional<ExtendedOrder> order;  // of the trained scores; of an order without cycles

  // That of the last stage that ran.
  RunStatus status() const { return stages.back().result.status; }
};

std::string to_text(const NextTokenReport& report);
Json to_json(const NextTokenReport& report);

}  // namespace attmirror::cli
