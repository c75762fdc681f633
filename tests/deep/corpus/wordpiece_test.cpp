// WordPiece: texts whose pieces follow from the rules, both engines against each other, places, and vocabularies with
// something wrong.
#include "base/atomic_file.hpp"
#include "deep/corpus/random_text.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include "support/size.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::pieces_of;
using test::small_wordpiece;
using Pieces = std::vector<std::string>;

class Unicode : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_component("unicode")) GTEST_SKIP() << "this build has no ICU";
  }
};
using WordPieceOfUnicode = Unicode;

TEST_F(WordPieceOfUnicode, FollowsTheRules) {
  std::ifstream file(test::corpus_fixture("wordpiece.json"));
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 50u);
  for (const WordPieceEngine engine : {WordPieceEngine::fast, WordPieceEngine::plain}) {
    const WordPiece wordpiece = small_wordpiece(engine);
    for (const auto& example : cases) {
      const auto text = example["text"].get<std::string>();
      EXPECT_EQ(pieces_of(wordpiece, wordpiece.encode(text, example["length"].get<std::int64_t>())),
                example["pieces"].get<Pieces>())
          << example["name"] << (engine == WordPieceEngine::fast ? ", fast" : ", plain");
    }
  }
}

TEST_F(WordPieceOfUnicode, BytesThatAreNoUtf8AreDropped) {
  for (const WordPieceEngine engine : {WordPieceEngine::fast, WordPieceEngine::plain}) {
    const WordPiece wordpiece = small_wordpiece(engine);
    for (const char* broken :
         {"\xff", "\xc3", "\xe6\x97", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
      const std::string inside = std::string("x") + broken + "y " + broken + " hi";
      EXPECT_EQ(pieces_of(wordpiece, wordpiece.encode(inside)), (Pieces{"[CLS]", "xy", "hi", "[SEP]"}));
      EXPECT_EQ(pieces_of(wordpiece, wordpiece.encode(broken)), (Pieces{"[CLS]", "[SEP]"}));
    }
  }
}

TEST_F(WordPieceOfUnicode, BothEnginesAgreeOnRandomText) {
  const WordPiece fast = small_wordpiece(), plain = small_wordpiece(WordPieceEngine::plain);
  EXPECT_TRUE(rc::check([&] {
    const auto length = *rc::gen::inRange<std::int64_t>(1, 60);
    for (const std::string& text : *test::random_texts()) {
      RC_ASSERT(fast.encode(text, length) == plain.encode(text, length));
      RC_ASSERT(fast.encode(text, 100'000) == plain.encode(text, 100'000));
    }
  }));
}

// Each code point alone, within a word and beside a mark.
TEST_F(WordPieceOfUnicode, BothEnginesAgreeOnEveryLetter) {
  const WordPiece fast = small_wordpiece(), plain = small_wordpiece(WordPieceEngine::plain);
  const char32_t step = test::reduced_size ? 37 : 1;
  for (char32_t code = 0; code < 0x30000; code += step) {
    std::string letter;
    append_utf8(letter, code);  // a surrogate is no UTF-8 in either engine
    const std::string text = letter + " x" + letter + "y " + letter + "\u0301\u302e\u0323" + letter + "!";
    ASSERT_EQ(fast.encode(text), plain.encode(text)) << "U+" << std::hex << static_cast<unsigned>(code);
  }
}

TEST_F(WordPieceOfUnicode, PiecesStandWhereTheyCameFrom) {
  const WordPiece wordpiece = small_wordpiece();
  const std::string text = "  Café «unaffable»,日good🎬 x\u200by";
  const std::vector<TextPiece> pieces = wordpiece.encode_pieces(text);
  std::vector<std::pair<std::string, std::string>> places;
  for (const TextPiece& piece : pieces)
    places.emplace_back(piece.piece, text.substr(piece.begin, piece.end - piece.begin));
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"[CLS]", ""},    {"cafe", "Café"},   {"«", "«"},         {"un", "un"},
      {"##aff", "aff"}, {"##able", "able"}, {"»", "»"},         {",", ","},
      {"日", "日"},     {"[UNK]", "good🎬"}, {"xy", "x\u200by"}, {"[SEP]", ""}};
  EXPECT_EQ(places, expected);
  const std::string marks = "e\u0301 xy\u0301";
  const std::vector<TextPiece> marked = wordpiece.encode_pieces(marks);
  ASSERT_EQ(marked.size(), 4u);
  EXPECT_EQ(marks.substr(marked[1].begin, marked[1].end - marked[1].begin), "e\u0301");
  EXPECT_EQ(marks.substr(marked[2].begin, marked[2].end - marked[2].begin), "xy\u0301");
}

TEST_F(WordPieceOfUnicode, PlacesAreInOrderAndIdsTheSame) {
  const WordPiece wordpiece = small_wordpiece();
  EXPECT_TRUE(rc::check([&] {
    const std::string text = *rc::gen::map(test::random_texts(), [](const std::vector<std::string>& texts) {
      std::string joined;
      for (const std::string& part : texts) joined += part;
      return joined;
    });
    const auto length = *rc::gen::inRange<std::int64_t>(1, 1000);
    const std::vector<TextPiece> pieces = wordpiece.encode_pieces(text, length);
    std::vector<std::int32_t> ids;
    std::size_t at = 0;
    for (const TextPiece& piece : pieces) {
      ids.push_back(piece.id);
      RC_ASSERT(piece.piece == wordpiece.piece(piece.id));
      RC_ASSERT(piece.begin <= piece.end);
      RC_ASSERT(piece.end <= text.size());
      // A letter that decomposes into several pieces gives its place to each of them.
      RC_ASSERT(piece.end >= at);
      at = piece.end;
    }
    RC_ASSERT(ids == wordpiece.encode(text, length));
  }));
}

TEST(WordPiece, AsciiNeedsNoUnicode) {
  const WordPiece wordpiece = small_wordpiece();
  for (const WordPieceEngine engine : {WordPieceEngine::fast, WordPieceEngine::plain})
    EXPECT_EQ(pieces_of(wordpiece, small_wordpiece(engine).encode("The\tmovie: UNAFF\x01"
                                                                  "ABLE!\x7f")),
              (Pieces{"[CLS]", "the", "movie", ":", "un", "##aff", "##able", "!", "[SEP]"}));
  if (test::has_component("unicode")) {
    EXPECT_TRUE(unicode_version().starts_with("Unicode "));
    return;
  }
  EXPECT_EQ(unicode_version(), "ASCII only");
  expect_bad_input({"ICU", "libicu-dev"}, [&] { wordpiece.encode("caf\u00e9"); });
  expect_bad_input({"ICU", "libicu-dev"}, [&] { wordpiece.encode_pieces("caf\u00e9"); });
}

TEST(WordPiece, LengthsAndIds) {
  const WordPiece wordpiece = small_wordpiece();
  for (const std::int64_t length : {0, -1}) {
    expect_bad_input({"length is"}, [&] { wordpiece.encode("hi", length); });
    expect_bad_input({"length is"}, [&] { wordpiece.encode_pieces("hi", length); });
  }
  EXPECT_EQ(wordpiece.padding(), 0);
  EXPECT_EQ(wordpiece.unknown(), 1);
  EXPECT_EQ(wordpiece.classifier(), 2);
  EXPECT_EQ(wordpiece.separator(), 3);
  EXPECT_EQ(wordpiece.piece(wordpiece.id("movie")), "movie");
  EXPECT_TRUE(wordpiece.contains("movie"));
  EXPECT_FALSE(wordpiece.contains("film"));
  expect_bad_input({"no piece 'film'"}, [&] { wordpiece.id("film"); });
  expect_bad_input({"id is -1"}, [&] { wordpiece.piece(-1); });
  expect_bad_input({"id is " + std::to_string(wordpiece.size())}, [&] { wordpiece.piece(wordpiece.size()); });
}

// A continuation without letters and pieces that no text can spell must not lead anywhere.
TEST(WordPiece, OddPiecesDoNoHarm) {
  const Pieces pieces = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "##", "a", "##b", "A", "two words", "##B"};
  for (const WordPieceEngine engine : {WordPieceEngine::fast, WordPieceEngine::plain}) {
    const WordPiece wordpiece(pieces, {.engine = engine});
    EXPECT_EQ(pieces_of(wordpiece, wordpiece.encode("AB a two words ## ac")),
              (Pieces{"[CLS]", "a", "##b", "a", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[SEP]"}));
  }
}

TEST(WordPiece, RefusesOtherVocabularies) {
  const Pieces markers = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  EXPECT_EQ(WordPiece(markers).size(), 4);
  for (std::size_t i = 0; i < markers.size(); ++i) {
    Pieces fewer = markers;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    expect_bad_input({"vocabulary has no piece " + markers[i]}, [&] { WordPiece{fewer}; });
  }
  const auto with = [&](const std::string& piece) {
    Pieces more = markers;
    more.push_back("a");
    more.push_back(piece);
    return more;
  };
  expect_bad_input({"vocabulary, line 6 is empty"}, [&] { WordPiece{with("")}; });
  expect_bad_input({"vocabulary, line 6: 'a' is already given in line 5"}, [&] { WordPiece{with("a")}; });
  expect_bad_input({"vocabulary, line 6: '\\xff' is not UTF-8"}, [&] { WordPiece{with("\xff")}; });
  EXPECT_NE(WordPiece(with("b")).fingerprint(), WordPiece(with("c")).fingerprint());
  EXPECT_EQ(WordPiece(with("b")).fingerprint(), WordPiece(with("b")).fingerprint());
  EXPECT_EQ(WordPiece(with("b")).fingerprint().size(), 16u);
}

TEST(WordPiece, LoadsFiles) {
  const test::TemporaryFolder folder;
  const auto path = folder / "vocab.txt";
  const auto load = [&](std::string_view content) {
    write_file_atomically(path, content);
    return load_wordpiece(path);
  };
  EXPECT_EQ(load("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").size(), 5);
  EXPECT_EQ(load("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na").piece(4), "a");
  EXPECT_EQ(load("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n").fingerprint(),
            load("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na").fingerprint());
  expect_bad_input({"vocab.txt, line 3 is empty"}, [&] { load("[PAD]\n[UNK]\n\n[CLS]\n"); });
  expect_bad_input({"vocab.txt has no piece [PAD]"}, [&] { load(""); });
  expect_bad_input({"cannot read", "none.txt"}, [&] { load_wordpiece(folder / "none.txt"); });
}

// The trie against the table, on vocabularies of its own making: prefixes of each other, all bytes, one letter.
TEST_F(WordPieceOfUnicode, BothEnginesAgreeOnRandomVocabularies) {
  EXPECT_TRUE(rc::check([] {
    Pieces pieces = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
    const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
    for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(letters))
      for (const std::string& form : {piece, "##" + piece})
        if (!form.empty() && std::find(pieces.begin(), pieces.end(), form) == pieces.end())
          pieces.push_back(form);
    const std::string text = *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c', ' '));
    RC_ASSERT(WordPiece(pieces).encode(text) ==
              WordPiece(pieces, {.engine = WordPieceEngine::plain}).encode(text));
  }));
}

}  // namespace
}  // namespace attmirror
