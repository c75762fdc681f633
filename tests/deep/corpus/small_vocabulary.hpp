// The small vocabulary of the fixtures, and what tests of WordPiece share.
#pragma once

#include "support/paths.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::test {

inline std::filesystem::path corpus_fixture(const std::string& name) { return fixture("corpus") / name; }

inline WordPiece small_wordpiece(WordPieceEngine engine = WordPieceEngine::fast) {
  return load_wordpiece(corpus_fixture("vocabulary.txt"), {.engine = engine});
}

inline std::vector<std::string> pieces_of(const WordPiece& wordpiece, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) pieces.push_back(wordpiece.piece(id));
  return pieces;
}

inline bool has_component(std::string_view name) { return std::ranges::count(components(), name) > 0; }

}  // namespace attmirror::test
