// attmirror deep, as users run it: the hand-over to attmirror-deep, the pages, and every refusal with exit code 2.
#include "cli/command.hpp"

#include "base/atomic_file.hpp"
#include "support/paths.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class DeepCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    ASSERT_EQ(std::system((example_models_path().string() + " " + folder->path().string()).c_str()), 0);
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }
  static std::string at(const std::string& name) { return (*folder / name).string(); }
  static Words texts() { return {"--vocabulary", at("vocab.txt")}; }

  static inline TemporaryFolder* folder = nullptr;
};

TEST_F(DeepCommand, IsHandedOver) {
  const Outcome help = attmirror_command({"deep", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Usage: attmirror deep [OPTIONS] SUBCOMMAND"), std::string::npos);
  const std::string completion = attmirror_command({"completion", "bash"}).out;
  for (const char* name : {"train", "tokenize", "attention-map", "score", "histogram", "report"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + name), std::string::npos) << name;
    // What completion offers is what there is.
    EXPECT_NE(completion.find(name), std::string::npos) << name;
  }
  EXPECT_NE(attmirror_command({"--help"}).out.find("\n  deep "), std::string::npos);
  EXPECT_EQ(attmirror_command({"deep"}).code, 2);
  const Outcome unknown = attmirror_command({"--json", "deep", "nonsense"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(Json::parse(unknown.out)["status"], "error");
  const Outcome option = attmirror_command({"deep", "score", "--nonsense"});
  EXPECT_EQ(option.code, 2);
  EXPECT_NE(option.err.find("attmirror deep score --help"), std::string::npos) << option.err;
}

TEST_F(DeepCommand, SaysWhatIsMissingWhereItIsNotBuilt) {
  fs::copy_file(command_path(), *folder / "attmirror");
  const std::string line = at("attmirror") + " deep train --json > " + at("out") + " 2> " + at("err");
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  const std::string said = Json::parse(file_text(at("out")))["error"];
  for (const char* words : {"attmirror-deep", "libtorch-dev", "libicu-dev"})
    EXPECT_NE(said.find(words), std::string::npos) << said;
}

TEST_F(DeepCommand, AttentionMapOfTwoModels) {
  const Outcome outcome = attmirror_command(
      Words{"deep", "attention-map", at("sharp.safetensors"), at("deep.safetensors"), "--text",
            "The movie was great", "--text", "the the the the the the the the the the the the the",
            "--sentences", at("sentences.tsv"), "-o", at("maps.html"), "--json"} +
      texts());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["models"], (Json{"sharp", "deep"}));
  ASSERT_EQ(answer["texts"].size(), 8u);
  EXPECT_EQ(answer["texts"][0]["tokens"], 6);
  EXPECT_EQ(answer["texts"][0]["probabilities"].size(), 2u);
  EXPECT_TRUE(answer["texts"][1]["cut"]);
  EXPECT_EQ(answer["texts"][1]["tokens"], 12);
  EXPECT_NE(outcome.err.find("1 text is longer"), std::string::npos);
  EXPECT_NE(file_text(at("maps.html")).find("maps-data"), std::string::npos);
  // A page is not written over unasked, and nothing else at all.
  expect_refusal(
      Words{"deep", "attention-map", at("sharp.safetensors"), "--text", "the", "-o", at("maps.html")} +
          texts(),
      2, {"maps.html", "--overwrite"});
  expect_refusal(Words{"deep", "attention-map", at("sharp.safetensors"), "--text", "the", "--overwrite", "-o",
                       at("vocab.txt")} +
                     texts(),
                 2, {"vocab.txt", "not a page"});
}

TEST_F(DeepCommand, AttentionMapWhereNetworksDiffer) {
  const Words words = Words{"deep",
                            "attention-map",
                            at("sharp.safetensors"),
                            at("deep.safetensors"),
                            at("trials"),
                            "--sentences",
                            at("sentences.tsv"),
                            "--differing",
                            "1",
                            "-o",
                            at("differing.html"),
                            "--overwrite"} +
                      texts();
  const Outcome outcome = attmirror_command(words + Words{"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out), &differing = answer["differing"];
  EXPECT_EQ(answer["models"], (Json{"sharp", "deep", "trials/0", "trials/1"}));
  EXPECT_EQ(differing["sentences"], 6);
  EXPECT_EQ(differing["scored"], 3);
  ASSERT_EQ(differing["most"].size(), 1u);
  ASSERT_EQ(differing["least"].size(), 1u);
  const Json &most = differing["most"][0], &least = differing["least"][0];
  EXPECT_GT(most["range"], least["range"]);

  // The numbers are those of `attmirror deep score`.
  const Outcome score =
      attmirror_command(Words{"deep", "score", at("sharp.safetensors"), at("deep.safetensors"), at("trials"),
                              "--sentences", at("sentences.tsv"), "--json"} +
                        texts());
  ASSERT_EQ(score.code, 0) << score.err;
  const Json scores = Json::parse(score.out);
  EXPECT_EQ(differing["pairs"], scores["pairs"]);
  int wins = differing["ties"];
  for (std::size_t m = 0; m < 4; ++m) {
    const Json& network = differing["networks"][m];
    EXPECT_EQ(network["score"], scores["models"][m]["published_way"]);
    wins += network["wins"].get<int>();
    double sum = 0;
    for (const Json* one : {&most, &least}) {
      const Json& sentence = scores["models"][m]["sentences"][one->at("row").get<std::size_t>()];
      EXPECT_EQ(one->at("scores")[m], sentence["published"]);
      EXPECT_EQ(one->at("text"), sentence["sentence"]);
      sum += one->at("scores")[m].get<double>();
    }
    EXPECT_NEAR(network["mean_chosen"], sum / 2, 1e-12);
  }
  EXPECT_EQ(wins, 3);
  const std::vector<double> ranked = most["scores"];
  const auto highest = std::ranges::max_element(ranked), lowest = std::ranges::min_element(ranked);
  EXPECT_EQ(most["highest"],
            Json::array({answer["models"][static_cast<std::size_t>(highest - ranked.begin())]}));
  EXPECT_EQ(most["lowest"],
            Json::array({answer["models"][static_cast<std::size_t>(lowest - ranked.begin())]}));
  EXPECT_NEAR(most["range"], *highest - *lowest, 1e-12);

  const std::string page = file_text(at("differing.html"));
  for (const char* said :
       {"Where the networks differ most", "Where the networks differ least", "the highest"})
    EXPECT_NE(page.find(said), std::string::npos) << said;
  EXPECT_NE(page.find("differ most in “" + most["text"].get<std::string>()), std::string::npos);
  const Outcome text = attmirror_command(words);
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* said : {"mean of all 3", "against sharp", "differing.html (4 networks, 2 texts)"})
    EXPECT_NE(text.out.find(said), std::string::npos) << said << "\n" << text.out;
}

TEST_F(DeepCommand, RefusalsOfDiffering) {
  const auto refused = [&](const Words& words, std::initializer_list<std::string_view> said) {
    expect_refusal(Words{"deep", "attention-map", "-o", at("refused.html")} + words, 2, said);
    EXPECT_FALSE(fs::exists(at("refused.html")));
    EXPECT_FALSE(fs::exists(at("refused-tables")));
  };
  const Words two{at("sharp.safetensors"), at("deep.safetensors")},
      sentences{"--sentences", at("sentences.tsv")}, one{"--differing", "1"};
  for (const char* count : {"0", "-1"})
    refused(two + sentences + texts() + Words{"--differing", count},
            {std::string("differing is ") + count, "1 or more"});
  // Three of the six sentences have a score.
  refused(two + sentences + texts() + Words{"--differing", "2"},
          {"differing is 2", "1 to 1", "3 sentences with a score"});
  refused(two + sentences + texts() + Words{"--differing", "many"},
          {"differing is \"many\"", "whole number"});
  refused(Words{at("sharp.safetensors")} + sentences + texts() + one, {"differing is 1", "1 network"});
  refused(two + texts() + one, {"differing is 1", "without --sentences"});
  refused(two + sentences + texts() + one + Words{"--text", "the movie"}, {"differing is 1", "--text"});
  refused(Words{at("images.safetensors"), at("patches.safetensors"), "--images", at("images.bin"), "--image",
                "0"} +
              one,
          {"differing is 1", "--images"});
  write_file_atomically(at("one-score.tsv"),
                        "label\tpivotal\tsentence\n1\tgreat\tthe movie was great\n0\tboring\tthe movie\n");
  refused(two + Words{"--sentences", at("one-score.tsv")} + texts() + one, {"differing is 1", "1 sentence "});
}

TEST_F(DeepCommand, AttentionMapOfImages) {
  const Outcome outcome = attmirror_command(
      {"deep", "attention-map", at("images.safetensors"), at("patches.safetensors"), "--images",
       at("images.bin"), "--image", "4,0", "--image", "2", "-o", at("images.html"), "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["models"], (Json{"images", "patches"}));
  EXPECT_EQ(answer["classes"].size(), 10u);
  ASSERT_EQ(answer["images"].size(), 3u);
  const std::vector<std::pair<int, std::string>> expected{{4, "automobile"}, {0, "cat"}, {2, "truck"}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(answer["images"][i]["image"], expected[i].first);
    EXPECT_EQ(answer["images"][i]["class"], expected[i].second);
    ASSERT_EQ(answer["images"][i]["answers"].size(), 2u);
  }
  const Json& one = answer["images"][0]["answers"][1];
  EXPECT_EQ(one["side"], 4);
  EXPECT_EQ(one["attention"].size(), 17u);
  EXPECT_EQ(one["probabilities"].size(), 10u);
  ASSERT_EQ(one["blocks"].size(), 2u);
  EXPECT_EQ(one["blocks"][0]["heads"].size(), 3u);
  EXPECT_EQ(one["correct"], one["answer"] == "automobile");
  // The numbers of the last block's mean are those of the row beside them.
  const std::vector<double> row = one["attention"];
  const auto top = static_cast<std::size_t>(std::max_element(row.begin() + 1, row.end()) - row.begin()) - 1;
  const Json& mean = one["blocks"][1]["mean"];
  EXPECT_EQ(mean["top_patch"], (Json{top / 4, top % 4}));
  EXPECT_NEAR(mean["top_share"], row[top + 1] / (1 - row[0]), 1e-6);
  EXPECT_EQ(mean["class_token"], row[0]);

  const std::string page = file_text(at("images.html"));
  for (const char* words : {"Image 4: automobile", "Image 0: cat", "data:image/png;base64", "patch-grid"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  for (const char* outside : {"src=\"http", "href=\"http", "url(http", "@import"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  const Outcome text =
      attmirror_command({"deep", "attention-map", at("images.safetensors"), "--images", at("images.bin"),
                         "--image", "1", "-o", at("images.html"), "--overwrite"});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* words : {"airplane", "top patch", "images.html (1 network, 1 image)"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
}

TEST_F(DeepCommand, RefusalsOfImages) {
  const auto refused = [&](const Words& words, std::initializer_list<std::string_view> said) {
    expect_refusal(Words{"deep", "attention-map", "-o", at("refused.html")} + words, 2, said);
    EXPECT_FALSE(fs::exists(at("refused.html")));
    EXPECT_FALSE(fs::exists(at("refused-tables")));
  };
  const Words model{at("images.safetensors")}, images{"--images", at("images.bin")}, first{"--image", "0"};
  // A network for texts given images, and one of each.
  refused(Words{at("sharp.safetensors")} + images + first, {"sharp.safetensors", "encoder", "images, a vit"});
  refused(model + Words{at("sharp.safetensors")} + images + first, {"sharp.safetensors", "encoder"});
  refused(Words{at("seven-classes.safetensors")} + images + first,
          {"seven-classes.safetensors", "7 classes", "images.bin", "10"});
  refused(Words{at("gray.safetensors")} + images + first,
          {"gray.safetensors", "1 color channels", "images.bin", "3"});
  refused(Words{at("diverged-images.safetensors")} + images + first, {"diverged-images", "not finite"});
  refused(model + Words{"--images", at("short.bin")} + first, {"short.bin", "15364 bytes", "3073"});
  refused(model + Words{"--images", at("label-10.bin")} + first, {"label-10.bin", "label 10", "0 to 9"});
  refused(model + Words{"--images", at("none.bin")} + first, {"none.bin", "No such file"});
  refused(model + images + Words{"--image", "5"}, {"--image is 5", "0 to 4", "images.bin"});
  refused(model + images + Words{"--image", "0,-1"}, {"--image is -1", "0 to 4"});
  for (const char* bad : {"cat", "1.5"})
    refused(model + images + Words{"--image", bad},
            {std::string("--image is \"") + bad + "\"", "whole number"});
  for (const char* bad : {"0,,2", "2,", ""})
    refused(model + images + Words{"--image", bad},
            {std::string("--image is \"") + bad + "\"", "numbers such as 0,17,203"});
  refused(model + images, {"no image", "--image"});
  refused(model + first, {"--image", "--images"});
  refused(model + images + first + texts(), {"--vocabulary"});
  refused(model + images + first + Words{"--text", "the movie"}, {"--images", "--text"});
  refused(Words{at("sharp.safetensors"), "--text", "the movie"}, {"--vocabulary"});
  // A network for images given texts.
  refused(model + texts() + Words{"--text", "the movie"}, {"images.safetensors", "vit", "texts, an encoder"});
  refused(model + texts() + Words{"--sentences", at("sentences.tsv")}, {"images.safetensors", "vit"});
}

TEST_F(DeepCommand, Score) {
  const Outcome outcome =
      attmirror_command(Words{"deep", "score", at("sharp.safetensors"), at("trials"), "--sentences",
                              at("sentences.tsv"), "--json", "-o", at("score.html")} +
                        texts());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  ASSERT_EQ(answer["models"].size(), 3u);
  EXPECT_EQ(answer["models"][2]["model"], "trials/1");
  const Json& first = answer["models"][0];
  EXPECT_EQ(first["published_way"]["kept"], 3);
  EXPECT_EQ(first["words_sum"]["kept"], 5);
  EXPECT_EQ(answer["published"]["l1.1"], 0.4387);
  EXPECT_EQ(first["sentences"][3]["dropped"], "\"overheats\" is split into over ##heat ##s");
  EXPECT_TRUE(first["sentences"][4]["sum"].is_null());
  const Outcome text =
      attmirror_command(Words{"deep", "score", at("run"), "--sentences", at("sentences.tsv")} + texts());
  EXPECT_EQ(text.code, 0);
  for (const char* words : {"0.4387", "0.3122", "3 of 6", "does not occur"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words;
}

TEST_F(DeepCommand, ScoreSaysWhoWinsEachSentence) {
  const Words words = Words{"deep",
                            "score",
                            at("sharp.safetensors"),
                            at("deep.safetensors"),
                            "--sentences",
                            at("sentences.tsv")} +
                      texts();
  const Outcome outcome = attmirror_command(words + Words{"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out), &pair = answer["pairs"][0];
  EXPECT_EQ(answer["pairs"].size(), 1u);
  EXPECT_EQ(pair["models"], (Json{"sharp", "deep"}));
  // Three sentences have P1's score, five that over words.
  for (const auto& [way, cases] : {std::pair{"published_way", 3}, std::pair{"words_sum", 5}}) {
    const Json& test = pair[way];
    EXPECT_EQ(test["wins"][0].get<int>() + test["wins"][1].get<int>() + test["ties"].get<int>(), cases)
        << way;
    EXPECT_GE(test["p"].get<double>(), 0.0625);
  }
  const Outcome text = attmirror_command(words);
  for (const char* said : {"Who wins, in numbers of sentences", "sharp : deep"})
    EXPECT_NE(text.out.find(said), std::string::npos) << said;
}

TEST_F(DeepCommand, ScoreOnReviews) {
  std::string reviews;
  for (int i = 0; i < 20; ++i)
    reviews +=
        i % 2 == 0 ? "0\tthe plot was boring . i hated it\n" : "1\tthe movie was great . i enjoyed it\n";
  write_file_atomically(at("reviews.tsv"), reviews);
  const Words networks{"deep",      "score",          at("sharp.safetensors"), at("deep.safetensors"),
                       "--reviews", at("reviews.tsv")};
  const Outcome found = attmirror_command(networks + texts() +
                                          Words{"--words-from", at("reviews.tsv"), "--least-reviews", "10",
                                                "--limit", "6", "--list", at("words.csv"), "-o",
                                                at("reviews.html"), "--json", "--threads", "2"});
  ASSERT_EQ(found.code, 0) << found.err;
  const Json answer = Json::parse(found.out);
  EXPECT_FALSE(answer.contains("models"));  // those of sentences, which were not asked for
  const Json& study = answer["reviews"];
  EXPECT_EQ(study["with_listed_word"], 20);
  EXPECT_EQ(study["rows"], (Json{0, 3, 6, 10, 13, 16}));
  EXPECT_EQ(study["models"][1]["scores"].size(), 6u);
  EXPECT_EQ(study["models"][0]["score"]["kept"], 6);
  EXPECT_EQ(study["pairs"][0]["models"], (Json{"sharp", "deep"}));
  EXPECT_EQ(
      file_text(at("words.csv")),
      "word,label,count,share\nboring,0,10,1\nhated,0,10,1\nplot,0,10,1\nenjoyed,1,10,1\ngreat,1,10,1\nmovie,1,10,1\n");
  EXPECT_NE(file_text(at("reviews.html")).find("gives sentiment words the highest mean score"),
            std::string::npos);

  // The list that was written, and a token file, give the same numbers; so does one thread.
  ASSERT_EQ(attmirror_command(Words{"deep", "tokenize", at("reviews.tsv"), "-o", at("reviews.safetensors")} +
                              texts())
                .code,
            0);
  const Outcome again = attmirror_command(
      Words{"deep", "score", at("sharp.safetensors"), at("deep.safetensors"), "--reviews",
            at("reviews.safetensors"), "--words", at("words.csv"), "--limit", "6", "--json"} +
      texts());
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["reviews"]["models"], study["models"]);

  const Outcome both = attmirror_command(
      networks + texts() +
      Words{"--words", at("words.csv"), "--sentences", at("sentences.tsv"), "-o", at("both.html")});
  ASSERT_EQ(both.code, 0) << both.err;
  for (const char* said :
       {"0.4387", "Attention to sentiment words in 20 reviews", "Who wins, in numbers of reviews"})
    EXPECT_NE(both.out.find(said), std::string::npos) << said;
}

TEST_F(DeepCommand, ScoreRefusesReviews) {
  write_file_atomically(at("few.tsv"), "0\tthe plot was boring\n1\tthe movie was great\n");
  write_file_atomically(at("list.csv"), "word,label\nboring,0\n");
  write_file_atomically(at("strange.csv"), "word,label\nsplendid,1\n");
  write_file_atomically(at("absent.csv"), "word,label\ntheater,1\n");
  const auto refused = [&](const Words& words, std::initializer_list<std::string_view> said) {
    expect_refusal(Words{"deep", "score", "-o", at("refused.html")} + texts() + words, 2, said);
    EXPECT_FALSE(fs::exists(at("refused.html")));
  };
  const Words network{at("sharp.safetensors")}, reviews{"--reviews", at("few.tsv")},
      list{"--words", at("list.csv")};
  refused(network, {"--sentences", "--reviews"});
  refused(network + list, {"--words", "--reviews"});
  refused(network + reviews, {"--words", "--words-from"});
  refused(network + reviews + list + Words{"--words-from", at("few.tsv")}, {"--words and --words-from"});
  refused(network + reviews + list + Words{"--list", at("new.csv")}, {"--list", "--words-from"});
  refused(network + reviews + list + Words{"--limit", "-1"}, {"limit is -1"});
  refused(network + reviews + Words{"--words-from", at("few.tsv"), "--least-share", "0.5"},
          {"least_share is 0.5"});
  refused(network + reviews + Words{"--words-from", at("few.tsv"), "--list", at("new.csv")},
          {"few.tsv", "no word", "300"});
  EXPECT_FALSE(fs::exists(at("new.csv")));
  refused(network + Words{"--reviews", at("none.tsv")} + list, {"none.tsv", "No such file"});
  refused(network + Words{"--reviews", at("sharp.safetensors")} + list,
          {"sharp.safetensors", "not a token file"});
  refused(network + reviews + Words{"--words", at("none.csv")}, {"none.csv", "No such file"});
  refused(network + reviews + Words{"--words", at("strange.csv")}, {"strange.csv line 2", "splendid"});
  refused(network + reviews + Words{"--words", at("absent.csv")},
          {"few.tsv", "no review with a listed word"});
  refused(Words{at("images.safetensors")} + reviews + list, {"images.safetensors", "vit", "encoder"});
  refused(Words{at("diverged.safetensors")} + reviews + list, {"diverged", "not finite"});
  ASSERT_EQ(attmirror_command({"deep", "tokenize", at("few.tsv"), "--vocabulary", at("short-vocab.txt"), "-o",
                               at("other.safetensors")})
                .code,
            0);
  refused(network + Words{"--reviews", at("other.safetensors")} + list,
          {"other.safetensors", "another vocabulary"});
}

TEST_F(DeepCommand, Histogram) {
  const Outcome outcome = attmirror_command(
      {"deep", "histogram", at("run"), at("images.safetensors"), "--json", "-o", at("weights.html")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json answer = Json::parse(outcome.out);
  EXPECT_EQ(answer["figures"], 3);
  EXPECT_EQ(answer["models"][0]["model"], "run");
  EXPECT_EQ(answer["models"][1]["kind"], "vit");
  EXPECT_EQ(answer["models"][0]["maps"][0]["weights"], 288);
}

TEST_F(DeepCommand, Refusals) {
  const auto refused = [&](const Words& words, std::initializer_list<std::string_view> said) {
    expect_refusal(Words{"deep", "attention-map", "-o", at("refused.html")} + words, 2, said);
    EXPECT_FALSE(fs::exists(at("refused.html")));
  };
  const Words text{"--text", "the movie"}, right = texts() + text;
  refused(Words{at("none.safetensors")} + right, {"none.safetensors", "No such file"});
  refused(Words{at("images.safetensors")} + right, {"images.safetensors", "vit", "encoder"});
  refused(Words{at("sharp.safetensors"), "--vocabulary", at("short-vocab.txt")} + text,
          {"26", "short-vocab.txt", "5"});
  refused(Words{at("sharp.safetensors"), "--vocabulary", at("none.txt")} + text, {"none.txt"});
  refused(Words{at("sharp.safetensors"), "--text", ""} + texts(), {"text 1 has no words"});
  refused(Words{at("sharp.safetensors")} + texts(), {"--text", "--sentences"});
  refused(Words{at("sharp.safetensors"), "--sentences", at("vocab.txt")} + texts(), {"vocab.txt", "line 1"});
  refused(Words{at("diverged.safetensors")} + right, {"diverged", "not finite"});
  refused(Words{at("vocab.txt")} + right, {"vocab.txt"});
  fs::create_directories(*folder / "empty");
  refused(Words{at("empty")} + right, {"empty", "final.safetensors"});
}

TEST_F(DeepCommand, InfoSaysWhatFilesAre) {
  const Outcome weights = attmirror_command({"info", at("sharp.safetensors"), "--json"});
  ASSERT_EQ(weights.code, 0) << weights.err;
  EXPECT_EQ(Json::parse(weights.out)["kind"], "weights");
  const Outcome text = attmirror_command({"info", at("images.safetensors")});
  EXPECT_NE(text.out.find("weights of a transformer, vit: 1 blocks, 2 heads"), std::string::npos) << text.out;
}

}  // namespace
}  // namespace attmirror::test
