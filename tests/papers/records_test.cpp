// The reader of recorded trainings: what it makes of good files, and its sentence for each kind of bad one.
#include "papers/records.hpp"

#include "papers/fixture_records.hpp"
#include "papers/recorded_experiment.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_refused;
using test::fixture_configs;
using test::read;
using test::record_file;
using test::replaced;

TEST(Records, WhatIsThereIsRead) {
  const std::vector<TrainingRecord> records = read(record_file("runs.csv"), record_file("curves.csv"));
  ASSERT_EQ(records.size(), 18u);
  const TrainingRecord& first = records[3];
  EXPECT_EQ(first.run, "md-1.1-s1");
  EXPECT_EQ(first.config, "md-1.1");
  EXPECT_EQ(first.role, TrainingRole::main);
  EXPECT_EQ(first.seed, 1);
  EXPECT_EQ(first.lr, 8e-4);
  EXPECT_EQ(first.p, 1.1);
  EXPECT_EQ(first.status, RecordStatus::reached_accuracy);
  EXPECT_TRUE(first.is_comparable());
  EXPECT_EQ(first.epochs, 6);
  EXPECT_EQ(first.best_test, 0.8348);
  EXPECT_EQ(first.best_epoch, 4);
  EXPECT_EQ(first.epochs_to_stop, 6);
  EXPECT_EQ(first.score_sentences, 44);
  EXPECT_EQ(first.maps[0].above, 17694);
  EXPECT_EQ(first.maps[2].largest, 0.5);
  ASSERT_EQ(first.curve.size(), 6u);
  EXPECT_EQ(first.curve[3].test_accuracy, 0.8348);
  EXPECT_FALSE(first.best_validation);
  const auto failed = std::ranges::find(records, RecordStatus::failed, &TrainingRecord::status);
  ASSERT_NE(failed, records.end());
  EXPECT_EQ(failed->note, "out of memory: 3 GiB, \"cuda:0\"");
  EXPECT_FALSE(failed->is_comparable());
  EXPECT_FALSE(failed->lr);
  const auto tuning = std::ranges::find(records, TrainingRole::tuning, &TrainingRecord::role);
  EXPECT_EQ(tuning->best_validation, 0.83);
  EXPECT_FALSE(tuning->best_test);
}

TEST(Records, BadOnesAreRefusedInASentence) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  expect_refused("", curves, "runs.csv is empty: expected the names of its columns");
  expect_refused(replaced(runs, "best_test", "best_tset"), curves,
                 "runs.csv has an unknown column best_tset");
  expect_refused("run,config\n", curves, "runs.csv has no column role");
  expect_refused(replaced(runs, "run,config", "run,run"), curves, "runs.csv has the column run twice");
  expect_refused(replaced(runs, "0.8496,1,", "0.8496x,1,"), curves,
                 "runs.csv line 2: best_test is \"0.8496x\": expected a number");
  expect_refused(replaced(runs, "0.8496,1,", "1.8496,1,"), curves,
                 "runs.csv line 2: best_test is \"1.8496\": expected a share between 0 and 1");
  expect_refused(replaced(runs, "0.8496,1,", "nan,1,"), curves,
                 "runs.csv line 2: best_test is \"nan\": expected a number");
  expect_refused(replaced(runs, "adam,main,1,", "adam,main,-1,"), curves,
                 "runs.csv line 2: seed is \"-1\": expected a whole number from 0 on");
  expect_refused(
      replaced(runs, "adam-s1,adam,main", "adam-s1,adam,mian"), curves,
      "runs.csv line 2: role is \"mian\": expected main, tuning, repeat, ablation, longer or transfer; did you mean \"main\"?");
  expect_refused(replaced(runs, "adam-s1,adam,", "adam-s1,adan,"), curves,
                 "runs.csv line 2: config is \"adan\": there is no configs/adan.toml");
  expect_refused(replaced(runs, "adam-s2,", "adam-s1,"), curves, "runs.csv line 3: adam-s1 is there already");
  expect_refused(replaced(runs, "adam-s2,adam,main,2,", "adam-s2,adam,main,1,"), curves,
                 "runs.csv line 3: adam-s2 is there already");
  expect_refused(replaced(runs, ",0123abc,\n", ",0123abc\n"), curves,
                 "runs.csv line 2 has 35 cells: expected 36, one for each column");
  expect_refused(runs, replaced(curves, "\nadam-s1,1,", "\nadam-s7,1,"),
                 "curves.csv line 2: run is \"adam-s7\", which runs.csv does not have");
  expect_refused(runs, replaced(curves, "\nadam-s1,2,", "\nadam-s1,3,"),
                 "curves.csv line 3: epoch of adam-s1 is 3: expected 2");
  expect_refused(replaced(runs, "reached accuracy,3,", "reached accuracy,4,"), curves,
                 "curves.csv has 3 epochs of adam-s1: expected 4, as in runs.csv");
  expect_refused(replaced(runs, "\"\"cuda:0\"\"\"", "\"\"cuda:0"), curves,
                 "runs.csv line 11 has a quote that nothing closes");
}

// The first line with three names more, and each other line with three cells more, after the sixth.
std::string with_settings(const std::string& runs, const std::string& cells) {
  std::string text;
  std::istringstream lines(runs);
  for (std::string line; std::getline(lines, line);) {
    std::size_t at = 0;
    for (int comma = 0; comma < 6; ++comma) at = line.find(',', at) + 1;
    text += line.insert(at, text.empty() ? "data,settings,state_bytes," : cells) + "\n";
  }
  return text;
}

TEST(Records, ColumnsOfSettingsMayBeThere) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  EXPECT_TRUE(read(runs, curves).front().settings.empty());
  const std::vector<TrainingRecord> records =
      read(with_settings(runs, "sst2,optimizer.lr=1 model.heads=3,4096,"), curves);
  EXPECT_EQ(records.front().data, "sst2");
  EXPECT_EQ(records.front().settings, "optimizer.lr=1 model.heads=3");
  EXPECT_EQ(records.front().state_bytes, 4096);
  EXPECT_FALSE(read(with_settings(runs, ",,,"), curves).front().state_bytes);
  expect_refused(with_settings(runs, "imdb,,4 KB,"), curves,
                 "runs.csv line 2: state_bytes is \"4 KB\": expected a whole number from 0 on");
  // The same seed and learning rate twice is a mistake, unless other settings differ.
  const std::string twice = replaced(runs, "adam-s2,adam,main,2,", "adam-s2,adam,main,1,");
  expect_refused(with_settings(twice, "imdb,,,"), curves, "runs.csv line 3: adam-s2 is there already");
  const std::string differing =
      replaced(with_settings(twice, "imdb,a=1,,"), "adam-s2,adam,main,1,0.0003,,imdb,a=1",
               "adam-s2,adam,main,1,0.0003,,imdb,a=2");
  EXPECT_EQ(read(differing, curves).size(), 18u);
}

// The text without a column.
std::string without_column(const std::string& text, const std::string& name) {
  std::string result;
  std::istringstream lines(text);
  std::ptrdiff_t place = -1;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream parts(line + ",");
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    if (place < 0) place = std::ranges::find(cells, name) - cells.begin();
    if (place >= std::ssize(cells)) throw std::runtime_error("no column " + name);
    cells.erase(cells.begin() + place);
    for (const std::string& cell : cells) result += cell + ",";
    result.back() = '\n';
  }
  return result;
}

// Shares and largest weights by epoch came later than the first studies.
TEST(Records, CurvesMayLackWhatCameLater) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  const EpochRecord first = read(runs, curves).front().curve.front();
  EXPECT_EQ(first.share[0], 0.01733);
  EXPECT_EQ(first.largest[2], 0.1667);
  EXPECT_EQ(first.sparsity[1], 0.3988);
  const EpochRecord earlier =
      read(runs, without_column(without_column(curves, "K_share"), "K_largest")).front().curve.front();
  EXPECT_FALSE(earlier.share[0] || earlier.largest[0]);
  EXPECT_EQ(earlier.largest[2], 0.1667);
  expect_refused(runs, without_column(curves, "K_sparsity"), "curves.csv has no column K_sparsity");
  expect_refused(runs, replaced(curves, "0.01733", "1.01733"),
                 "curves.csv line 2: K_share is \"1.01733\": expected a share between 0 and 1");
  expect_refused(runs, replaced(curves, "0.1667", "large"),
                 "curves.csv line 2: V_largest is \"large\": expected a number");
}

TEST(Records, ColumnsOfReviewsMayBeThere) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  EXPECT_FALSE(read(runs, curves).front().review_score);
  // The names at the end of the first line, and cells at the end of each other.
  const auto with_reviews = [&](const std::string& cells) {
    std::string text;
    std::istringstream lines(runs);
    for (std::string line; std::getline(lines, line);)
      text += line + (text.empty() ? ",review_score,review_lift,review_top" : cells) + "\n";
    return text;
  };
  const TrainingRecord first = read(with_reviews(",0.25,1.5,0.125"), curves).front();
  EXPECT_EQ(first.review_score, 0.25);
  EXPECT_EQ(first.review_lift, 1.5);
  EXPECT_EQ(first.review_top, 0.125);
  EXPECT_FALSE(read(with_reviews(",,,"), curves).front().review_lift);
  expect_refused(with_reviews(",1.5,1.5,0"), curves,
                 "runs.csv line 2: review_score is \"1.5\": expected a share between 0 and 1");
}

TEST(Records, NamesOfColumnsAreNoRuns) {
  const auto has_runs = [](std::string_view runs) {
    return RecordTexts{.runs = runs, .curves = {}, .configs = {}}.has_runs();
  };
  EXPECT_FALSE(has_runs(""));
  EXPECT_FALSE(has_runs("run,config"));
  EXPECT_FALSE(has_runs("run,config\r\n"));
  EXPECT_TRUE(has_runs("run,config\nadam-s1,adam\n"));
}

TEST(Records, SpeedsAreRead) {
  const auto speeds = [](std::string_view text) {
    return read_speeds({.runs = {}, .curves = {}, .speed = text, .configs = {}});
  };
  EXPECT_TRUE(speeds("").empty());
  const std::string names = "optimizer,epoch_seconds,parameters\n";
  const std::vector<SpeedRecord> two = speeds(names + "md,3.5,1000\nadamw,4,1000\n");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1].optimizer, "adamw");
  EXPECT_EQ(two[0].epoch_seconds, 3.5);
  EXPECT_EQ(two[0].parameters, 1000);
  const auto refused = [&](const std::string& text, const std::string& message) {
    try {
      speeds(text);
      ADD_FAILURE() << "no error; expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), message);
    }
  };
  refused("optimizer,seconds,parameters\n", "speed.csv has an unknown column seconds");
  refused("optimizer,parameters\n", "speed.csv has no column epoch_seconds");
  refused(names + "md,0,1000\n", "speed.csv line 2: epoch_seconds is \"0\": expected a positive number");
  refused(names + "md,3,0\n", "speed.csv line 2: parameters is \"0\": expected a positive number");
  refused(names + "md,3,1000\nmd,3,1000\n", "speed.csv line 3: md is there already");
  refused(names + "md,3,1000\nadam,3,2000\n",
          "speed.csv line 3: parameters is \"2000\": expected 1000, as in the first row");
}

// The scores of the two trainings have the means 0.5 and 0.25, over two sentences each.
const std::string sentences_text =
    "run,sentence,pivotal,score,word_score\n"
    "md-1.1-s1,1,fantastic,0.75,1\n"
    "md-1.1-s1,2,breathtaking,,0.5\n"
    "md-1.1-s1,3,hated,0.25,0\n"
    "md-2-s1,1,fantastic,0.5,0.125\n"
    "md-2-s1,2,breathtaking,,\n"
    "md-2-s1,3,hated,0,0\n";

std::vector<TrainingRecord> read_with_sentences(const std::string& sentences) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  // The score, over how many sentences, and the score by words, of the two trainings; others have none.
  std::string text;
  std::istringstream lines(runs);
  for (std::string line; std::getline(lines, line);) {
    std::size_t begin = 0, end = 0;
    for (int comma = 0; comma < 19; ++comma) {
      if (comma == 16) begin = end;
      end = line.find(',', end) + 1;
    }
    if (!line.starts_with("run,"))
      line.replace(begin, end - begin - 1,
                   line.starts_with("md-1.1-s1,") ? "0.5,2,0.5"
                   : line.starts_with("md-2-s1,") ? "0.25,2,0.0625"
                                                  : ",,");
    text += line + "\n";
  }
  return read_records({.runs = text, .curves = curves, .sentences = sentences, .configs = fixture_configs});
}

TEST(Records, SentencesAreRead) {
  EXPECT_TRUE(read_with_sentences("").front().sentences.empty());
  const std::vector<TrainingRecord> records = read_with_sentences(sentences_text);
  const auto run = std::ranges::find(records, "md-2-s1", &TrainingRecord::run);
  ASSERT_NE(run, records.end());
  ASSERT_EQ(run->sentences.size(), 3u);
  EXPECT_EQ(run->sentences[0].pivotal, "fantastic");
  EXPECT_EQ(run->sentences[0].score, 0.5);
  EXPECT_EQ(run->sentences[0].word_score, 0.125);
  EXPECT_EQ(run->sentences[2].sentence, 3);
  EXPECT_FALSE(run->sentences[1].score || run->sentences[1].word_score);
  EXPECT_TRUE(records.front().sentences.empty());
}

TEST(Records, BadSentencesAreRefused) {
  const auto refused = [](std::string_view from, std::string_view to, const std::string& message) {
    try {
      read_with_sentences(replaced(sentences_text, from, to));
      ADD_FAILURE() << "no error; expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), message);
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    }
  };
  refused("md-1.1-s1,1", "md-9-s1,1",
          "sentences.csv line 2: run is \"md-9-s1\", which runs.csv does not have");
  refused("s1,3,hated,0.25", "s1,4,hated,0.25",
          "sentences.csv line 4: sentence of md-1.1-s1 is 4: expected 3");
  refused("s1,2,", "s1,two,", "sentences.csv line 3: sentence is \"two\": expected a whole number from 0 on");
  refused("0.75", "1.75", "sentences.csv line 2: score is \"1.75\": expected a share between 0 and 1");
  refused("0.125", "-0.125",
          "sentences.csv line 5: word_score is \"-0.125\": expected a share between 0 and 1");
  refused("3,hated,0,0", "3,loved,0,0",
          "sentences.csv line 7: pivotal is \"loved\": expected \"hated\", as in the first training");
  refused("3,hated,0,0", "3,,0,0", "sentences.csv line 7: pivotal is \"\": expected a word");
  refused("md-2-s1,3,hated,0,0\n", "",
          "sentences.csv has 2 sentences of md-2-s1: expected 3, as of the first training");
  refused("3,hated,0,0", "3,hated,,0",
          "sentences.csv has 1 sentence of md-2-s1 with a score: expected 2, as in runs.csv");
  refused("0.75", "0.76",
          "sentences.csv: the scores of md-1.1-s1 have the mean 0.5050: expected 0.5000, as in runs.csv");
  refused(
      "1\nmd-1.1-s1,2", "0.9\nmd-1.1-s1,2",
      "sentences.csv: the word_scores of md-1.1-s1 have the mean 0.4667 over 3 sentences: expected 0.5000, as in "
      "runs.csv");
  // A file that was cut.
  refused(sentences_text.substr(sentences_text.find("md-2-s1")), "",
          "sentences.csv has no sentence of md-2-s1, which has a score in runs.csv");
  refused(sentences_text.substr(sentences_text.find("md-1.1-s1")), "",
          "sentences.csv has no sentence of md-1.1-s1, which has a score in runs.csv");
  refused(",word_score", ",words", "sentences.csv has an unknown column words");
}

// attention.csv and histograms.csv beside the fixtures.
std::vector<TrainingRecord> read_with(const std::string& attention, const std::string& histograms) {
  const std::string runs = record_file("runs.csv"), curves = record_file("curves.csv");
  return read_records({.runs = runs,
                       .curves = curves,
                       .attention = attention,
                       .histograms = histograms,
                       .configs = fixture_configs});
}

void expect_refused_with(const std::string& attention, const std::string& histograms,
                         const std::string& message) {
  try {
    read_with(attention, histograms);
    ADD_FAILURE() << "no error; expected: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), message);
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  }
}

const std::string attention_text =
    "run,epoch,block,entropy,top_share,tokens_90,class_entropy,class_top_share,class_tokens_90,key_norm,query_norm,product_norm\n"
    "md-1.1-s1,2,1,4.5,0.1,90,4.25,0.125,80,3,4,10\n"
    "md-1.1-s1,2,2,4,0.2,70,3.5,0.25,60,3,4,11\n"
    "md-1.1-s1,6,1,3,0.3,50,2.5,0.5,40,5,6,20\n"
    "md-1.1-s1,6,2,2,0.4,30,1.5,0.75,20,5,6,21\n";

TEST(Records, AttentionIsReadByEpochAndBlock) {
  const std::vector<TrainingRecord> records = read_with(attention_text, "");
  ASSERT_EQ(records[3].attention.size(), 4u);
  EXPECT_TRUE(records[4].attention.empty());
  const AttentionRecord& last = records[3].attention[3];
  EXPECT_EQ(last.epoch, 6);
  EXPECT_EQ(last.block, 2);
  EXPECT_EQ(last.all.entropy, 2);
  EXPECT_EQ(last.all.top_share, 0.4);
  EXPECT_EQ(last.all.tokens_90, 30);
  EXPECT_EQ(last.class_token.top_share, 0.75);
  EXPECT_EQ(last.key_norm, 5);
  EXPECT_EQ(last.query_norm, 6);
  EXPECT_EQ(last.product_norm, 21);
}

TEST(Records, BadAttentionIsRefused) {
  const auto refused = [](std::string_view from, std::string_view to, const char* message) {
    expect_refused_with(replaced(attention_text, from, to), "", message);
  };
  refused("md-1.1-s1,2,1", "md-9-s1,2,1",
          "attention.csv line 2: run is \"md-9-s1\", which runs.csv does not have");
  refused("0.1,90", "1.5,90", "attention.csv line 2: top_share is \"1.5\": expected a share between 0 and 1");
  refused("0.1,90", ",90", "attention.csv line 2: top_share is \"\": expected a share between 0 and 1");
  refused("3,4,11", "-3,4,11", "attention.csv line 3: key_norm is \"-3\": expected a number from 0 on");
  refused("s1,2,2", "s1,2,3", "attention.csv line 3: block of md-1.1-s1 is 3: expected 2");
  refused("s1,6,1", "s1,1,1", "attention.csv line 4: epoch of md-1.1-s1 is 1: expected one from 2 to 6");
  refused("s1,6,2", "s1,7,1", "attention.csv line 5: epoch of md-1.1-s1 is 7: expected one from 6 to 6");
  refused("md-1.1-s1,6,2,2,0.4,30,1.5,0.75,20,5,6,21\n", "",
          "attention.csv: md-1.1-s1 has 1 block in epoch 6: expected 2, as in epoch 2");
  refused(",product_norm", ",norm", "attention.csv has an unknown column norm");
}

// Two bins a map: those above 0.06 and all others, as runs.csv has them.
std::string histograms_of_fixtures() {
  std::string text = "run,map,weight,count\n";
  for (const TrainingRecord& record : read_with("", "")) {
    if (record.role != TrainingRole::main || !record.is_comparable()) continue;
    for (std::size_t m = 0; m < map_names.size(); ++m)
      text += fmt::format("{},{},0,{}\n{},{},0.07,{}\n", record.run, map_names[m],
                          500000 - *record.maps[m].above, record.run, map_names[m], *record.maps[m].above);
  }
  return text;
}

TEST(Records, HistogramsAreReadAndRefused) {
  const std::string text = histograms_of_fixtures();
  const std::vector<HistogramBin> bins = read_with("", text)[0].histogram;
  ASSERT_EQ(bins.size(), 6u);
  EXPECT_EQ(bins[2].map, 'Q');
  EXPECT_EQ(bins[1].weight, 0.07);
  EXPECT_EQ(bins[1].count, 23003);
  const auto refused = [&](std::string_view from, std::string_view to, const char* message) {
    expect_refused_with("", replaced(text, from, to), message);
  };
  refused("K,0.07,23003", "K,-0.07,23003",
          "histograms.csv line 3: weight of adam-s1 is -0.07: expected one above the last");
  refused("s1,Q", "s1,W", "histograms.csv line 4: map is \"W\": expected K, Q or V");
  refused("K,0.07,23003", "K,0.07,some",
          "histograms.csv line 3: count is \"some\": expected a whole number from 0 on");
  refused("K,0.07,23003", "K,,23003", "histograms.csv line 3: weight is \"\": expected a number");
  refused(
      "K,0.07,23003", "K,0.07,23004",
      "histograms.csv has 23004 to 23004 weights of K above 0.06 for adam-s1: expected 23003, as in runs.csv");
  // 0.06 lies in the bin from 0.055 to 0.065, in which some may be smaller.
  EXPECT_NO_THROW(
      read_with("", replaced(replaced(text, "K,0.07,23003", "K,0.06,23004"), "K,0,476997", "K,0,476996")));
  refused("V,0,468150", "V,0,468151",
          "histograms.csv has 500001 weights of V for adam-s1: expected 500000, as of K");
  expect_refused_with("", text.substr(0, text.find("md-3-s2")),
                      "histograms.csv has no weights of md-3-s2, which came to its end");
}

// An experiment of a study that has a plan and nothing else.
class Planned final : public RecordedExperiment {
  ExperimentInfo about() const override {
    return {.id = "planned", .paper = "P1", .item = "", .title = "", .summary = ""};
  }
  std::string study() const override { return "plans"; }
  RecordTexts texts() const override { return {}; }
  ExperimentResult result_of(const RecordTexts&) const override {
    throw bad_input("there is nothing to read");
  }
};

TEST(Records, AnExperimentWithoutThemIsOutOfScope) {
  const Planned planned;
  EXPECT_EQ(planned.info().out_of_scope,
            "no training has been recorded yet; docs/results/plans/README.md says how to make them");
  EXPECT_TRUE(planned.run({}).findings.empty());
}

}  // namespace
}  // namespace attmirror
