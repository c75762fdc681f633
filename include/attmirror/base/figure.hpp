// A figure as plain data: one part of the code measures and fills it in, another (SVG, the HTML page) draws it.
//
// Two kinds are enough for the papers: curves and points over two axes, and a table of numbers as colors.
// Both carry the text that a reader who cannot see the picture needs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// One axis of a figure: its label, its scale, its range.
struct Axis {
  std::string label = {};
  // How numbers are spread along an axis.
  enum class Scale { linear, log } scale = Scale::linear;
  std::optional<std::pair<double, double>> range = {};  // empty: chosen from the data
  bool whole = false;                                   // it counts something: no ticks between whole numbers
};

// One curve or set of points, with a band around it where there is one.
struct Series {
  std::string name = {};  // in the legend; empty: not listed there
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {},
                      high = {};  // a band about y (a standard error, a quantile range); empty: none
  // Extra text when hovering over each point; empty: none.
  std::vector<std::string> labels = {};
  // What is drawn at the points of a series.
  enum class Mark { line, points, both } mark = Mark::line;
  // How the line of a series is drawn.
  enum class Dash { solid, dashed, dotted } dash = Dash::solid;
  // Series of the same color belong together (one optimizer, measured and predicted); -1: the next free color.
  int color = -1;
};

// values[r][c] is shown as a color and as a number, in row r from the top.
struct Heatmap {
  std::vector<std::string> rows = {}, columns = {};
  std::vector<std::vector<double>> values = {};                  // NaN: an empty cell
  int digits = 3;                                                // after the point
  std::vector<std::pair<std::size_t, std::size_t>> marked = {};  // cells with a frame: (row, column)
};

// A figure as data: a title, axes, and series or a heat map. report/svg.hpp draws it.
struct Figure {
  std::string id = {};  // letters, digits and dashes: the name of its file
  std::string title = {};
  std::string caption = {};      // what to notice in it; a sentence or two
  std::string description = {};  // for readers who cannot see it: what is drawn, and its outcome in numbers
  Axis x = {}, y = {};           // of the series; a heatmap uses only the labels
  std::vector<Series> series = {};
  std::optional<Heatmap> heatmap = {};  // instead of series
  // Use the same unit length in x and y: for paths in a plane. Both axes then have the same scale.
  bool equal_axes = false;

  // Throws Error (bad input) for an id that cannot be a file name, no title, no description, neither series
  // nor heatmap, series of unequal lengths, a heatmap whose rows do not fit, or an invalid range. Points that
  // are not finite, or not positive on a logarithmic axis, are allowed and not drawn.
  void validate() const;
};

}  // namespace attmirror
