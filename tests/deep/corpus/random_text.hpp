// Texts that try WordPiece's rules: words of the small vocabulary, letters of many scripts, marks that NFD reorders,
// blanks and controls of all kinds, broken UTF-8.
#pragma once

#include "deep/corpus/unicode.hpp"

#include <string>
#include <vector>

#include <rapidcheck.h>

namespace attmirror::test {

inline rc::Gen<std::string> random_text() {
  const auto one_of_these = rc::gen::elementOf(std::vector<std::string>{"a",
                                                                        "e",
                                                                        "x",
                                                                        "y",
                                                                        "the",
                                                                        "movie",
                                                                        "unaffable",
                                                                        "A",
                                                                        "Z",
                                                                        "5",
                                                                        "1988",
                                                                        " ",
                                                                        " ",
                                                                        " ",
                                                                        "\t",
                                                                        "\n",
                                                                        "\r\n",
                                                                        "!",
                                                                        "'",
                                                                        "#",
                                                                        "##",
                                                                        "[SEP]",
                                                                        "<br />",
                                                                        "é",
                                                                        "É",
                                                                        "ü",
                                                                        "ñ",
                                                                        "İ",
                                                                        "ß",
                                                                        "Σ",
                                                                        "ς",
                                                                        "ΟΔΟΣ",
                                                                        "日",
                                                                        "本",
                                                                        "한",
                                                                        "국",
                                                                        "ไ",
                                                                        "\u0e48",
                                                                        "हि",
                                                                        "न्दी",
                                                                        "שָׁ",
                                                                        "\u0301",
                                                                        "\u0327",
                                                                        "\u0323",
                                                                        "\u302e",
                                                                        "\u302f",
                                                                        "\U0001d165",
                                                                        "\U0001d16d",
                                                                        "\u093f",
                                                                        "\u00a0",
                                                                        "\u3000",
                                                                        "\u2028",
                                                                        "\u200b",
                                                                        "\u00ad",
                                                                        "\ufeff",
                                                                        "\ufffd",
                                                                        "\ue000",
                                                                        "\u0378",
                                                                        "“",
                                                                        "—",
                                                                        "£",
                                                                        "\u037e",
                                                                        "\u1fef",
                                                                        "\u212b",
                                                                        "\ufb01",
                                                                        "\U0002f800",
                                                                        "\U0002b830",
                                                                        "🎬",
                                                                        "\x01",
                                                                        "\x0b",
                                                                        "\x7f",
                                                                        "\u0085",
                                                                        "\xff",
                                                                        "\xc3",
                                                                        "\xe6\x97",
                                                                        "\xed\xa0\x80",
                                                                        std::string(1, '\0'),
                                                                        std::string(99, 'a'),
                                                                        std::string(102, 'e')});
  const auto any_letter = rc::gen::map(rc::gen::inRange<std::uint32_t>(0, 0x30000), [](std::uint32_t code) {
    std::string letter;
    append_utf8(letter, static_cast<char32_t>(code));
    return letter;
  });
  const auto any_byte =
      rc::gen::map(rc::gen::arbitrary<char>(), [](char byte) { return std::string(1, byte); });
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::weightedOneOf<std::string>(
                          {{8, one_of_these}, {2, any_letter}, {1, any_byte}})),
                      [](const std::vector<std::string>& parts) {
                        std::string text;
                        for (const std::string& part : parts) text += part;
                        return text;
                      });
}

// RapidCheck draws a hundred cases; this makes them a few thousand.
inline rc::Gen<std::vector<std::string>> random_texts() {
  return rc::gen::container<std::vector<std::string>>(32, random_text());
}

}  // namespace attmirror::test
