// The sentences, orders, embedding and targets of `attmirror next-token`.
#pragma once

#include "base/json.hpp"
#include "cli/next_token_options.hpp"
#include <attmirror/next_token/graph_svm.hpp>
#include <attmirror/next_token/partial_order.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror::cli {

// Sentences to test on, with what to call them.
struct UnseenSentences {
  std::string name;  // "same-order", or the file
  Sentences sentences;
};

struct Corpus {
  std::string source;  // the file, or how the sentences were generated
  Vocabulary vocabulary;
  Collocations collocations;
  std::string collocation_source;  // "two-word lines", ...
  Sentences sentences;
  std::vector<std::int64_t> lines;  // of a file
  std::vector<UnseenSentences> unseen;
  std::vector<std::string> missing_unseen;  // kinds that these data have none of, and why
};

// Throws Error (bad input).
Corpus make_corpus(const NextTokenPlan& plan, const NextTokenOptions& options);

// Why the sentences are not realizable, in a sentence, and as JSON.
struct Contradiction {
  std::string text;
  Json json;
};
std::optional<Contradiction> find_contradiction(const Corpus& corpus, const PartialOrders& orders);

// The max-margin problems that training goes to, as far as they were solved.
struct Targets {
  std::optional<MarginSolution> W_ov, W_kq;
  std::optional<FinitePart> finite;   // of cyclic priorities with readout attention
  std::vector<std::string> left_out;  // what was not solved, and why
};
Targets solve_targets(const NextTokenPlan& plan, const NextTokenOptions& options, const Corpus& corpus,
                      const Embedding& embedding, const PartialOrders& orders);

}  // namespace attmirror::cli
