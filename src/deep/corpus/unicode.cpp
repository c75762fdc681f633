// Normalisation letter by letter, so that each letter still knows where it came from.
//
// NFD is two things: each letter is replaced by its full decomposition, which ICU has letter by letter; then,
// within each run of letters of non-zero combining class, these are sorted by class, equal ones staying in order.
// Doing the two here instead of asking for the whole string costs a sort of two or three letters now and then, and
// keeps the places.
#include "deep/corpus/unicode.hpp"

#include "base/utf8.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#ifdef ATTMIRROR_ICU
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uversion.h>
#endif

namespace attmirror {

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

namespace {

bool is_ascii_symbol(char32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
         (code >= '{' && code <= '~');
}

}  // namespace

#ifdef ATTMIRROR_ICU

namespace {

UChar32 icu(char32_t code) { return static_cast<UChar32>(code); }

const UNormalizer2& decomposer() {
  static const UNormalizer2* const instance = [] {
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2* nfd = unorm2_getNFDInstance(&status);
    if (U_FAILURE(status))
      throw environment_error(
          fmt::format("ICU cannot load its tables of decompositions: {}", u_errorName(status)));
    return nfd;
  }();
  return *instance;
}

// The reference's blocks, its gap at U+2B820 included.
bool is_ideograph(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

bool is_dropped(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code == replacement_letter) return true;
  return (U_GET_GC_MASK(icu(code)) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

bool is_mark(char32_t code) { return u_charType(icu(code)) == U_NON_SPACING_MARK; }

// Rules 1 and 2.
std::vector<SourceLetter> cleaned(std::string_view text) {
  std::vector<SourceLetter> letters;
  letters.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Letter letter = first_letter(text.substr(at));
    const std::size_t begin = at;
    at += letter.bytes;
    if (is_dropped(letter.code)) continue;
    if (u_isUWhiteSpace(icu(letter.code))) {
      letters.push_back({U' ', begin, at});
    } else if (is_ideograph(letter.code)) {
      letters.push_back({U' ', begin, begin});
      letters.push_back({letter.code, begin, at});
      letters.push_back({U' ', at, at});
    } else {
      letters.push_back({letter.code, begin, at});
    }
  }
  return letters;
}

// The first half of rule 3.
std::vector<SourceLetter> decomposed(const std::vector<SourceLetter>& letters) {
  std::vector<SourceLetter> result;
  result.reserve(letters.size());
  for (const SourceLetter& letter : letters) {
    UChar parts[32];  // the longest full decomposition has four code points
    UErrorCode status = U_ZERO_ERROR;
    const int32_t units = letter.code < 0x80
                              ? -1
                              : unorm2_getDecomposition(&decomposer(), icu(letter.code), parts, 32, &status);
    if (U_FAILURE(status))
      throw environment_error(fmt::format("ICU cannot decompose U+{:04X}: {}",
                                          static_cast<unsigned>(letter.code), u_errorName(status)));
    if (units < 0) {
      result.push_back(letter);
      continue;
    }
    for (int32_t at = 0; at < units;) {
      UChar32 code = 0;
      U16_NEXT(parts, at, units, code);
      result.push_back({static_cast<char32_t>(code), letter.begin, letter.end});
    }
  }
  const auto combining_class = [](const SourceLetter& letter) {
    return letter.code < 0x80 ? 0 : u_getCombiningClass(icu(letter.code));
  };
  for (auto run = result.begin(); run != result.end();) {
    if (combining_class(*run) == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, result.end(),
                                  [&](const SourceLetter& letter) { return combining_class(letter) == 0; });
    const auto by_class = [&](const SourceLetter& a, const SourceLetter& b) {
      return combining_class(a) < combining_class(b);
    };
    if (!std::is_sorted(run, end, by_class)) {
      // Letters that change places come from all of the run: places stay in order.
      const std::size_t first = run->begin, last = std::prev(end)->end;
      std::stable_sort(run, end, by_class);
      for (auto letter = run; letter != end; ++letter) {
        letter->begin = first;
        letter->end = last;
      }
    }
    run = end;
  }
  return result;
}

}  // namespace

std::vector<SourceLetter> normalized_letters(std::string_view text) {
  std::vector<SourceLetter> letters;
  for (const SourceLetter& letter : decomposed(cleaned(text))) {
    if (is_mark(letter.code)) {
      if (!letters.empty() && letters.back().end == letter.begin) letters.back().end = letter.end;
    } else {
      // The only letter with a longer lower case is U+0130, and it has just been decomposed.
      letters.push_back({static_cast<char32_t>(u_tolower(icu(letter.code))), letter.begin, letter.end});
    }
  }
  return letters;
}

bool is_punctuation(char32_t code) { return code < 0x80 ? is_ascii_symbol(code) : u_ispunct(icu(code)) != 0; }

std::string unicode_version() { return "Unicode " U_UNICODE_VERSION; }

#else

namespace {

[[noreturn]] void refuse() {
  throw bad_input(
      "this text has letters beyond ASCII, and attmirror was built without ICU: install libicu-dev and build "
      "it again");
}

}  // namespace

std::vector<SourceLetter> normalized_letters(std::string_view text) {
  std::vector<SourceLetter> letters;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto code = static_cast<char32_t>(static_cast<unsigned char>(text[at]));
    if (code >= 0x80) refuse();
    if (code == ' ' || code == '\t' || code == '\n' || code == '\r')
      letters.push_back({U' ', at, at + 1});
    else if (code > ' ' && code < 0x7F)
      letters.push_back({code >= 'A' && code <= 'Z' ? code - 'A' + 'a' : code, at, at + 1});
  }
  return letters;
}

bool is_punctuation(char32_t code) {
  if (code >= 0x80) refuse();
  return is_ascii_symbol(code);
}

std::string unicode_version() { return "ASCII only"; }

#endif

}  // namespace attmirror
