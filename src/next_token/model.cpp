#include <attmirror/base/error.hpp>
#include <attmirror/next_token/model.hpp>

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace attmirror {

namespace {

// What a model refers to where its stage needs none.
const Sentences no_sentences;
const Collocations no_collocations;

void check_vocabulary(std::string_view name, std::ptrdiff_t size, std::ptrdiff_t expected) {
  if (size != expected)
    throw bad_input(fmt::format("the {} have a vocabulary of {} tokens: expected {}, as the embedding has",
                                name, size, expected));
}

// Without W_ov the probability of y is that of attending to a token which y follows: there must be one.
void check_followed(const Sentences& sentences, const Collocations& collocations) {
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const auto followed = [&](Token x) { return collocations.follows(sentences.label(i), x); };
    if (!std::ranges::any_of(sentences.tokens(i), followed))
      throw bad_input(fmt::format(
          "the label {} of sentence {} follows none of its tokens: the readout attention cannot predict it",
          sentences.label(i), i));
  }
}

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::collocation:
      return "W_ov";
    case Stage::attention:
      return "W_kq";
    case Stage::joint:
      break;
  }
  return "joint";
}

std::string_view to_string(Readout readout) { return readout == Readout::softmax ? "softmax" : "attention"; }

NextTokenModel::NextTokenModel(const NextTokenData& data, Stage stage, Readout readout)
    : data_(data), stage_(stage), readout_(readout) {
  if (data_.embedding == nullptr || vocabulary_size() == 0)
    throw bad_input("the model has no embedding: expected a vector for each token");
  const bool learns_collocations = stage != Stage::attention, attends = stage != Stage::collocation;
  if (readout == Readout::attention && stage != Stage::attention)
    throw bad_input(
        fmt::format("the readout is attention and the stage {}: without W_ov there is only the stage W_kq",
                    to_string(stage)));
  if (data_.sentences == nullptr) data_.sentences = &no_sentences;
  if (data_.collocations == nullptr) data_.collocations = &no_collocations;

  if (learns_collocations || readout == Readout::attention) {
    check_vocabulary("collocations", collocations().vocabulary_size(), vocabulary_size());
    if (collocations().count() == 0)
      throw bad_input("no token has a successor: expected at least one collocation to learn from");
  }
  if (attends) {
    check_vocabulary("sentences", sentences().vocabulary_size(), vocabulary_size());
    if (sentences().empty()) throw bad_input("there are no sentences: expected at least one to learn from");
  }
  if (readout == Readout::attention) check_followed(sentences(), collocations());

  if (readout == Readout::softmax) blocks_.push_back({NextTokenBlock::W_ov, dim(), vocabulary_size(), true});
  if (attends) blocks_.push_back({NextTokenBlock::W_kq, dim(), dim(), true});
  if (learns_collocations) trained_.push_back(NextTokenBlock::W_ov);
  if (attends) trained_.push_back(NextTokenBlock::W_kq);
}

Parameters NextTokenModel::zero_parameters() const { return ParameterBlocks(blocks_).parameters(); }

}  // namespace attmirror
