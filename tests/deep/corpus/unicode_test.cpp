// Normalisation letter by letter against ICU's own, which takes whole strings and knows no places.
#include "deep/corpus/unicode.hpp"

#include "base/utf8.hpp"
#include "deep/corpus/random_text.hpp"
#include "support/size.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#ifdef ATTMIRROR_ICU
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace attmirror {
namespace {

std::u32string codes_of(const icu::UnicodeString& text) {
  std::u32string codes;
  for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1))
    codes += static_cast<char32_t>(text.char32At(at));
  return codes;
}

icu::UnicodeString decomposed(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::UnicodeString result = icu::Normalizer2::getNFDInstance(status)->normalize(text, status);
  EXPECT_TRUE(U_SUCCESS(status));
  return result;
}

icu::UnicodeString without_marks(const icu::UnicodeString& text) {
  icu::UnicodeString result;
  for (const char32_t code : codes_of(text))
    if (u_charType(static_cast<UChar32>(code)) != U_NON_SPACING_MARK)
      result.append(static_cast<UChar32>(code));
  return result;
}

icu::UnicodeString lower_case(const icu::UnicodeString& text) {
  icu::UnicodeString result;
  for (const char32_t code : codes_of(text))
    result.append(icu::UnicodeString(static_cast<UChar32>(u_tolower(static_cast<UChar32>(code)))));
  return result;
}

// Rules 1 to 4, a whole string at a time.
std::u32string normalized(std::string_view text) {
  icu::UnicodeString cleaned;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    text.remove_prefix(letter.bytes);
    const auto code = static_cast<UChar32>(letter.code);
    const int8_t kind = u_charType(code);
    const bool is_blank = code == '\t' || code == '\n' || code == '\r' || kind == U_SPACE_SEPARATOR ||
                          kind == U_LINE_SEPARATOR || kind == U_PARAGRAPH_SEPARATOR;
    const UBlockCode block = ublock_getCode(code);
    const bool is_ideograph = block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS ||
                              block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_A ||
                              block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_B ||
                              block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_C ||
                              block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_D ||
                              (block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_E && code >= 0x2B920) ||
                              block == UBLOCK_CJK_COMPATIBILITY_IDEOGRAPHS ||
                              block == UBLOCK_CJK_COMPATIBILITY_IDEOGRAPHS_SUPPLEMENT;
    if (is_blank)
      cleaned.append(u' ');
    else if (kind == U_CONTROL_CHAR || kind == U_FORMAT_CHAR || kind == U_PRIVATE_USE_CHAR || code == 0xFFFD)
      continue;
    else if (is_ideograph)
      cleaned.append(u' ').append(code).append(u' ');
    else
      cleaned.append(code);
  }
  return codes_of(lower_case(without_marks(decomposed(cleaned))));
}

std::u32string letters_of(std::string_view text) {
  std::u32string codes;
  for (const SourceLetter& letter : normalized_letters(text)) codes += letter.code;
  return codes;
}

TEST(Normalization, EqualsThatOfWholeStrings) {
  EXPECT_TRUE(rc::check([] {
    for (const std::string& text : *test::random_texts()) RC_ASSERT(letters_of(text) == normalized(text));
  }));
}

TEST(Normalization, EqualsThatOfEveryLetter) {
  const char32_t step = test::reduced_size ? 19 : 1;
  for (char32_t code = 0; code < 0x110000; code += step) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text = "a";
    append_utf8(text, code);
    ASSERT_EQ(letters_of(text), normalized(text)) << "U+" << std::hex << static_cast<unsigned>(code);
  }
}

// Some descriptions of the rules lower the case first; for no letter does it matter.
TEST(Normalization, LowerCaseMayComeFirst) {
  for (UChar32 code = 0x80; code < 0x30000; ++code) {
    if (U_IS_SURROGATE(code)) continue;
    const icu::UnicodeString letter(code);
    icu::UnicodeString lower_first = letter;
    lower_first.toLower(icu::Locale::getRoot());  // the whole mapping: two letters for U+0130
    ASSERT_EQ(without_marks(decomposed(lower_first)), lower_case(without_marks(decomposed(letter))))
        << "U+" << std::hex << code;
  }
}

TEST(Normalization, PunctuationIsAsciiSymbolsAndUnicodesP) {
  for (UChar32 code = 0; code < 0x20000; ++code) {
    const bool ascii_symbol = (code >= '!' && code <= '/') || (code >= ':' && code <= '@') ||
                              (code >= '[' && code <= '`') || (code >= '{' && code <= '~');
    const bool is_p = (U_GET_GC_MASK(code) & U_GC_P_MASK) != 0;
    ASSERT_EQ(is_punctuation(static_cast<char32_t>(code)), ascii_symbol || is_p) << "U+" << std::hex << code;
  }
}

TEST(Normalization, WritesUtf8) {
  for (char32_t code = 0; code < 0x110000; code += 7) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    const Letter letter = first_letter(text);
    ASSERT_EQ(letter.code, code);
    ASSERT_EQ(letter.bytes, text.size());
  }
}

}  // namespace
}  // namespace attmirror
#endif
