// Text sets: both orders of columns, the folders of aclImdb, P1's sentences, and files with something wrong.
#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/deep/text_set.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using Texts = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;

TextSet parse(std::string_view content, TextColumns columns = TextColumns::found) {
  return parse_text_set(content, "reviews.tsv", {.columns = columns});
}

TEST(TextSet, FindsTheLabels) {
  TextSet set = parse("1\tgood one\n0\tbad one\n");
  EXPECT_EQ(set.texts, (Texts{"good one", "bad one"}));
  EXPECT_EQ(set.labels, (Labels{1, 0}));
  EXPECT_EQ(set.rows(), 2);
  set = parse("good one\t1\nbad one\t0\n");
  EXPECT_EQ(set.texts, (Texts{"good one", "bad one"}));
  EXPECT_EQ(set.labels, (Labels{1, 0}));
}

TEST(TextSet, TextsMayHoldTabsAndLabels) {
  EXPECT_EQ(parse("1\ta\tb\n0\t1\tc\n").texts, (Texts{"a\tb", "1\tc"}));
  EXPECT_EQ(parse("a\tb\t1\n0\tc\t0\n").texts, (Texts{"a\tb", "0\tc"}));
  // One row settles it for all: the other column of the first row looks like a label, too.
  EXPECT_EQ(parse("1\t0\n0\tbad\n").labels, (Labels{1, 0}));
  EXPECT_EQ(parse("1\t0\nbad\t0\n").labels, (Labels{0, 0}));
}

TEST(TextSet, TakesLineEndsOfAllKinds) {
  for (const char* content :
       {"1\tgood\n0\tbad\n", "1\tgood\r\n0\tbad\r\n", "1\tgood\n0\tbad", "1\tgood\r\n0\tbad",
        "\xEF\xBB\xBF"
        "1\tgood\n0\tbad\n"}) {
    EXPECT_EQ(parse(content).texts, (Texts{"good", "bad"})) << content;
    EXPECT_EQ(parse(content).labels, (Labels{1, 0})) << content;
  }
  EXPECT_EQ(parse("1\t\n0\tbad").texts, (Texts{"", "bad"}));
  EXPECT_EQ(parse("\t1\nbad\t0\r\n").texts, (Texts{"", "bad"}));
}

TEST(TextSet, SkipsAHeader) {
  EXPECT_EQ(parse("label\ttext\n1\tgood\n").texts, (Texts{"good"}));
  EXPECT_EQ(parse("sentence\tlabel\ngood\t1\n").texts, (Texts{"good"}));
  expect_bad_input({"reviews.tsv has no rows"}, [] { parse("sentence\tlabel\n"); });
}

TEST(TextSet, RefusesWhatItCannotRead) {
  expect_bad_input({"reviews.tsv has no rows"}, [] { parse(""); });
  expect_bad_input({"reviews.tsv, line 2 has no tab"}, [] { parse("1\tgood\nbad\n1\tgood"); });
  expect_bad_input({"reviews.tsv, line 3 has no tab"}, [] { parse("1\tgood\n0\tbad\n\n"); });
  expect_bad_input({"line 2", "NUL byte"}, [] { parse(std::string_view("1\tgood\n0\tb\0d\n", 13)); });
  // The first column was right for two lines, the last for none.
  expect_bad_input({"reviews.tsv, line 3: the first column is '2': expected a label"},
                   [] { parse("1\tgood\n0\tbad\n2\tfine\n"); });
  expect_bad_input({"reviews.tsv, line 3: the last column is '-1'"},
                   [] { parse("good\t1\nbad\t0\nfine\t-1\n"); });
  for (const char* label : {"", "01", " 1", "1.0", "pos", "\xff"})
    expect_bad_input({"line 1"}, [&] { parse(std::string(label) + "\tgood\n"); });
  expect_bad_input({"reviews.tsv, line 1 to 2", "both columns", "label,text"}, [] { parse("1\t0\n0\t0\n"); });
}

TEST(TextSet, ColumnsCanBeSaid) {
  EXPECT_EQ(parse("1\t0\n0\t0\n", TextColumns::label_text).labels, (Labels{1, 0}));
  EXPECT_EQ(parse("1\t0\n0\t0\n", TextColumns::text_label).labels, (Labels{0, 0}));
  expect_bad_input({"reviews.tsv, line 2: the label is 'bad'"},
                   [] { parse("1\t0\nbad\t0\n", TextColumns::label_text); });
  for (const TextColumns columns : {TextColumns::found, TextColumns::label_text, TextColumns::text_label})
    EXPECT_EQ(parse_text_columns(to_string(columns)), columns);
  expect_bad_input({"columns is 'text'", "text,label"}, [] { parse_text_columns("text"); });
}

TEST(TextSet, ReadsFilesPackedAndNot) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.tsv", "1\tgood\n");
  EXPECT_EQ(read_text_set(folder / "a.tsv").texts, (Texts{"good"}));
  expect_bad_input({"cannot read", "none.tsv", "No such file"}, [&] { read_text_set(folder / "none.tsv"); });
  expect_bad_input({"cannot read", "No such file"}, [&] { read_text_set(folder / "none.csv"); });
  write_file_atomically(folder / "a.csv", "1,good\n");
  expect_bad_input({"a.csv is not a text set", ".tsv.xz"}, [&] { read_text_set(folder / "a.csv"); });
  write_file_atomically(folder / "b.tsv", "one line\n");
  expect_bad_input({"b.tsv, line 1 has no tab"}, [&] { read_text_set(folder / "b.tsv"); });
  if (!test::has_component("xz")) return;
  const TextSet packed = read_text_set(test::corpus_fixture("reviews.tsv.xz"));
  EXPECT_EQ(packed.rows(), 40);
  EXPECT_EQ(packed.texts[39], "review 39 was fun");
  write_file_atomically(folder / "c.tsv.xz", "1\tgood\n");
  expect_bad_input({"c.tsv.xz is not an .xz file"}, [&] { read_text_set(folder / "c.tsv.xz"); });
}

TEST(TextSet, ReadsAclImdbFoldersByNumber) {
  const test::TemporaryFolder folder;
  const fs::path train = folder / "aclImdb/train";
  for (const char* part : {"train/neg", "train/pos", "train/unsup", "test"})
    fs::create_directories(folder / "aclImdb" / part);
  const auto write = [&](const char* name, const char* text) { write_file_atomically(train / name, text); };
  write("neg/10_1.txt", "worst");
  write("neg/9_4.txt", "bad");
  write("neg/0_3.txt", "awful\nfilm");
  write("neg/notes.md", "no review");
  write("pos/2_7.txt", "good");
  write("pos/2_10.txt", "great");
  write("pos/last.txt", "without a number");
  write("unsup/1_0.txt", "no verdict");
  const TextSet set = read_text_set(train);
  EXPECT_EQ(set.texts, (Texts{"awful\nfilm", "bad", "worst", "great", "good", "without a number"}));
  EXPECT_EQ(set.labels, (Labels{0, 0, 0, 1, 1, 1}));

  expect_bad_input({"aclImdb holds two sets", "train", "test"}, [&] { read_text_set(folder / "aclImdb"); });
  expect_bad_input({"has no folder neg"}, [&] { read_text_set(folder / "aclImdb/test"); });
  fs::create_directories(folder / "aclImdb/test/neg");
  expect_bad_input({"has no folder pos"}, [&] { read_text_set(folder / "aclImdb/test"); });
  fs::create_directories(folder / "aclImdb/test/pos");
  expect_bad_input({"neg has no .txt files"}, [&] { read_text_set(folder / "aclImdb/test"); });
  write_file_atomically(train / "neg/1_1.txt", std::string_view("a\0b", 3));
  expect_bad_input({"1_1.txt has a NUL byte"}, [&] { read_text_set(train); });
}

TEST(PivotalSentences, AreReadWithTheirHeader) {
  const auto read = [](std::string_view content) { return parse_pivotal_sentences(content, "p.tsv"); };
  const auto sentences = read("label\tpivotal\tsentence\r\n1\tfun\tIt was fun\r\n0\tbad\tSo bad");
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_EQ(sentences[0].label, 1);
  EXPECT_EQ(sentences[0].pivotal, "fun");
  EXPECT_EQ(sentences[0].sentence, "It was fun");
  EXPECT_EQ(sentences[1].sentence, "So bad");
  expect_bad_input({"p.tsv, line 1 is ''", "pivotal"}, [&] { read(""); });
  expect_bad_input({"p.tsv, line 1 is '1\\x09fun\\x09It was fun'"}, [&] { read("1\tfun\tIt was fun\n"); });
  const std::string header = "label\tpivotal\tsentence\n";
  expect_bad_input({"p.tsv has no rows"}, [&] { read(header); });
  expect_bad_input({"p.tsv, line 2 has 2 columns"}, [&] { read(header + "1\tfun\n"); });
  expect_bad_input({"p.tsv, line 2 has 1 columns"}, [&] { read(header + "\n"); });
  expect_bad_input({"line 2 has 4 columns"}, [&] { read(header + "1\ta\tb\tc\n"); });
  expect_bad_input({"p.tsv, line 2: the label is '2'"}, [&] { read(header + "2\tfun\tIt was fun\n"); });
  expect_bad_input({"line 2: the pivotal word is empty"}, [&] { read(header + "1\t\tIt was fun\n"); });
  expect_bad_input({"line 2: the sentence is empty"}, [&] { read(header + "1\tfun\t\n"); });
}

TEST(PivotalSentences, ThoseOfP1) {
  const test::SharedFile file("data/p1_sentences.tsv");
  if (file.is_absent()) GTEST_SKIP() << file.absence();
  const auto sentences = read_pivotal_sentences(file.path());
  ASSERT_EQ(sentences.size(), 50u);
  EXPECT_EQ(sentences[0].pivotal, "fantastic");
  EXPECT_EQ(sentences[0].sentence, "The movie was fantastic");
  EXPECT_EQ(
      std::count_if(sentences.begin(), sentences.end(),
                    [](const PivotalSentence& s) { return s.sentence.find(s.pivotal) == std::string::npos; }),
      3);
}

TEST(TextSet, ReadsSst2) {
  const test::SharedFile train_file("data/sst2/train.tsv"), test_file("data/sst2/test.tsv"),
      dev_file("data/sst2/dev.tsv");
  for (const auto& file : {train_file, test_file, dev_file})
    if (file.is_absent()) GTEST_SKIP() << file.absence();
  EXPECT_EQ(read_text_set(train_file.path()).rows(), 67'349);
  EXPECT_EQ(read_text_set(test_file.path()).rows(), 1'821);
  const TextSet dev = read_text_set(dev_file.path());
  EXPECT_EQ(dev.rows(), 872);
  EXPECT_EQ(dev.texts[0], "it 's a charming and often affecting journey . ");
  EXPECT_EQ(dev.labels[0], 1);
}

}  // namespace
}  // namespace attmirror
