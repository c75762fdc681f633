// The sentences, orders, embedding and targets of `attmirror next-token`.
#pragma once

#include "base/json.hpp"
#include "cli/next_token_options.hpp"
#include "next_token/next_token_folder.hpp"
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

// The lines of a text that --skip-unexplained left out, and the first line of each reason.
struct SkippedLines {
  struct Reason {
    std::string name, text;  // a word for programs, and "whose last word follows none of the others"
    std::int64_t lines = 0, first = 0;
  };
  std::int64_t sentences = 0, kept = 0;  // lines of three words or more
  std::vector<Reason> reasons;           // those that there are
  std::int64_t ambiguous = 0;  // words with several successors, of which the most frequent was taken

  std::string text() const;  // some lines of the report
  Json json() const;
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
  std::optional<SkippedLines> skipped{};    // of --skip-unexplained

  NextTokenInput input(const Embedding& embedding) const {
    return {&vocabulary, &collocations, &sentences, &embedding};
  }
};

// Throws Error (bad input).
Corpus make_corpus(const NextTokenPlan& plan, const NextTokenOptions& options);

// Why the sentences are not realizable, in a sentence, and as JSON.
struct Contradiction {
  std::string text;
  Json json;
};
Contradiction nothing_left(const Corpus& corpus);  // after --skip-unexplained
std::optional<Contradiction> find_contradiction(const Corpus& corpus, const PartialOrders& orders);

struct Targets : NextTokenTargets {
  std::vector<std::string> left_out;  // what was not solved, and why
};
Targets solve_targets(const NextTokenPlan& plan, const NextTokenOptions& options, const Corpus& corpus,
                      const Embedding& embedding, const PartialOrders& orders);

}  // namespace attmirror::cli
