// Building the double array: nodes breadth first, each given the first base at which all its children find free cells.
//
// Nodes with many children come early, when there is room, and most others have a single child, which fits anywhere.
// The search starts at the first free cell, or later once the cells there have proved too full: a start that never
// moves would look through the same crowded cells for every node.
#include "deep/corpus/piece_trie.hpp"

#include <algorithm>
#include <queue>

namespace attmirror {
namespace {

constexpr std::size_t bytes = 256;

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

}  // namespace

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, std::int32_t>> pieces) : cells_(2 * bytes) {
  std::sort(pieces.begin(), pieces.end());
  struct Node {
    std::size_t cell, first, last, depth;  // its pieces are first..last-1, equal in their first `depth` bytes
  };
  std::queue<Node> open;
  cells_[0].parent = 0;
  open.push({0, 0, pieces.size(), 0});
  std::size_t search_from = 1;
  while (!open.empty()) {
    Node node = open.front();
    open.pop();
    if (node.first < node.last && pieces[node.first].first.size() == node.depth)
      cells_[node.cell].id = pieces[node.first++].second;
    if (node.first == node.last) continue;

    struct Child {
      unsigned char byte;
      std::size_t first, last;
    };
    std::vector<Child> children;
    for (std::size_t i = node.first; i < node.last; ++i) {
      const unsigned char byte = byte_at(pieces[i].first, node.depth);
      if (children.empty() || children.back().byte != byte) children.push_back({byte, i, i});
      children.back().last = i + 1;
    }

    // `cell` is where the first child goes; a base may not be negative.
    std::size_t taken = 0, cell = std::max<std::size_t>(search_from, children.front().byte + std::size_t{1});
    const std::size_t searched_from = cell;
    const auto fits = [&](std::size_t base) {
      return std::all_of(children.begin(), children.end(),
                         [&](const Child& child) { return cells_[base + child.byte].parent < 0; });
    };
    for (;; ++cell) {
      if (cell + 2 * bytes > cells_.size()) cells_.resize(cells_.size() + cells_.size() / 2 + 2 * bytes);
      if (cells_[cell].parent >= 0) {
        ++taken;
        continue;
      }
      if (fits(cell - children.front().byte)) break;
    }
    if (taken * 20 >= (cell - searched_from + 1) * 19) search_from = std::max(search_from, cell);

    const std::size_t base = cell - children.front().byte;
    cells_[node.cell].base = static_cast<std::int32_t>(base);
    for (const Child& child : children) {
      cells_[base + child.byte].parent = static_cast<std::int32_t>(node.cell);
      open.push({base + child.byte, child.first, child.last, node.depth + 1});
    }
  }
}

}  // namespace attmirror
