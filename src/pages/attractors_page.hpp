// The page of `attmirror attractors -o`. Internal.
#pragma once

#include "sweep/attractor_study.hpp"
#include <attmirror/report/page.hpp>

#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// `facts` say what was studied: the data, the model, the geometry.
Page attractors_page(const AttractorStudy& study, std::vector<std::pair<std::string, std::string>> facts);

}  // namespace attmirror
