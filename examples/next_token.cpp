// Next-token prediction in two stages: what follows which word first, then which word to look at; and where both go.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  // After "q" the word "red" counts more than "green", and "green" more than "blue"; "blue" before "red" was
  // never seen.
  const SentenceText text = parse_sentences(
      "red stop\n"
      "green go\n"
      "blue wait\n"
      "q q\n"
      "red green q stop\n"
      "green blue q go\n",
      "example");
  const PartialOrders orders(text.sentences, text.collocations);
  if (const auto cycle = orders.find_cycle()) {
    std::printf("%s\n", to_string(*cycle, text.vocabulary, text.lines).c_str());
    return 1;
  }
  const Embedding embedding = make_embedding(text.vocabulary.size(), {.kind = EmbeddingKind::one_hot});
  const MarginSolution target = attention_target(embedding, orders, Norm::frobenius());

  const std::ptrdiff_t d = embedding.dim();
  const TwoStageRun run = train_two_stage({&embedding, &text.collocations, &text.sentences},
                                          paper_stage(Stage::collocation, d, 2'000),
                                          paper_stage(Stage::attention, d, 5'000), {.W_kq = target.W});
  std::printf("W_kq is %.1e from its max-margin solution (%s) in direction\n",
              direction_gap(run.last().matrix("W_kq"), target.W), target.brief().c_str());

  // The order carries over to a sentence that training has not seen: red > green > blue.
  const SentenceFile unseen = parse_more_sentences("red blue q stop\n", "unseen", text.vocabulary);
  const Token next = predict(unseen.sentences, embedding, run.last()).front();
  std::printf("after \"red blue q\" comes \"%s\"\n", text.vocabulary.word(next).c_str());
}
