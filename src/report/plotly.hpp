// Figures as Plotly takes them. Internal.
#pragma once

#include <attmirror/base/figure.hpp>

#include <string>

namespace attmirror {

// {"data": [...], "layout": {...}} with colors left open: each trace has "colorIndex", and the page's script fills
// in the colors of the theme (page.js). Whatever JSON forbids and what an axis cannot show is null, which Plotly
// leaves out.
std::string plotly_json(const Figure& figure);

}  // namespace attmirror
