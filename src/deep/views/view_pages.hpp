// Networks as pages: attention on texts and images, the token-selection score, the weights of K, Q and V. Internal.
#pragma once

#include "deep/views/differing_sentences.hpp"
#include <attmirror/deep/image_attention.hpp>
#include <attmirror/deep/review_score.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/token_score.hpp>
#include <attmirror/report/page.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attmirror::deep {

struct ViewedText {
  std::string text;
  std::string title = {};  // empty: the text itself
  std::optional<std::int32_t> label = {};
  std::string pivotal = {};  // a word to mark; empty: none
};

// Reviews with a pivotal word, to be shown.
std::vector<ViewedText> viewed_texts(std::span<const PivotalSentence> sentences);

struct AttentionPageOptions {
  // Of attention within the page. Attention of all tokens takes blocks x heads x length^2 numbers a text and model,
  // 25 MB for P1's largest network and a review of 512 tokens: texts that do not fit show the first token's row
  // alone, and where even that is too much the last texts are left out. The page says so. Of images there is the row of
  // the class token alone; the last images are left out where it is too much.
  std::size_t most_bytes = 12u << 20;

  void validate() const;  // throws Error (bad input)
};

// What one text gave, besides the page.
struct TextAnswer {
  std::size_t tokens = 0;
  bool cut = false;  // longer than a model has places
  AttentionRows rows = AttentionRows::all;
  std::vector<double> probabilities;  // of label 1, one for each model; empty where the text was left out
};

struct AttentionView {
  TokenMaps maps;
  std::vector<TextAnswer> answers;  // one for each text
  std::vector<std::string> notes;   // sentences on what was cut or left out
};

// Throws Error (bad input), naming the text or the model.
AttentionView attention_view(std::span<const TextModel> models, const WordPiece& vocabulary,
                             std::span<const ViewedText> texts, const AttentionPageOptions& options = {});

Page attention_page(const AttentionView& view);

// Networks on the sentences in which they differ most and least.
struct DifferingView {
  std::vector<PivotalSentence> sentences;  // all of them
  std::vector<ModelScore> scores;          // on all of them
  DifferingSentences differing;
  AttentionView most, least;  // of differing.most and differing.least
};

// Each group has half of the page's room. Throws Error (bad input), as model_scores() and differing_sentences() do.
DifferingView differing_view(std::span<const TextModel> models, const WordPiece& vocabulary,
                             std::span<const PivotalSentence> sentences, std::int64_t count,
                             const AttentionPageOptions& options = {});

Page differing_page(const DifferingView& view);
// A row for each network: means, wins, and the sign test against the first.
Table differing_table(const DifferingView& view);

// What one image gave.
struct ImageAnswer {
  std::int64_t image = 0;  // its number in the set
  std::int32_t label = 0;
  std::vector<ImageAttention> models;  // one for each model; empty where the image was left out
};

struct ImageView {
  PatchMaps maps;
  std::vector<std::string> classes;  // their names
  std::vector<ImageAnswer> answers;  // one for each image that was asked for
  std::vector<std::string> notes;    // sentences on what was left out
};

// `classes` are the names of the set's classes. Throws Error (bad input), naming the image or the model.
ImageView image_view(std::span<const ImageModel> models, const ImageSet& images,
                     std::span<const std::string> classes, std::span<const std::int64_t> chosen,
                     const AttentionPageOptions& options = {});

// Both of the last block, the mean over heads.
Page image_attention_page(const ImageView& view);
Table image_attention_table(const ImageView& view);

// Means per model beside P1's, the sentences one by one, those that P1 drops with the reason; and the attention itself.
Page score_page(std::span<const ModelScore> scores, std::span<const PivotalSentence> sentences,
                const AttentionView& view);
Table score_table(std::span<const ModelScore> scores);
// Which sentences P1's way drops, and why; the same for all models of one vocabulary and length.
Table dropped_table(const ModelScore& score, std::span<const PivotalSentence> sentences);

// Who wins how many cases, a row for each pair; `cases` is what they are ("sentences"), `words_way` the second way of
// counting ("score over words").
Table pairs_table(std::span<const ScorePair> pairs, std::span<const std::string> networks,
                  std::string_view cases, std::string_view words_way);

// Networks on reviews with words from a list.
struct ReviewStudy {
  std::vector<SentimentWord> words;
  std::optional<SentimentRule> rule;  // by which they were found; none: they come from a file
  std::int64_t found = 0;             // reviews with a listed word, of which some were scored
  std::vector<ModelReviews> models;
};
Page review_page(const ReviewStudy& study);
Section review_section(const ReviewStudy& study);
std::string review_conclusion(const ReviewStudy& study);
Table review_table(const ReviewStudy& study);
Table review_pairs_table(const ReviewStudy& study);

struct WeightModel {
  std::string name;
  std::shared_ptr<Network> network;
};

// Statistics of each map, over all blocks and block by block, and histograms of the models in the same figures.
Page weight_page(std::span<const WeightModel> models);
Table weight_table(std::span<const WeightModel> models);

}  // namespace attmirror::deep
