// Tables and figures of the study of contradictory data. Internal.
#pragma once

#include "papers/graph_study.hpp"
#include <attmirror/base/figure.hpp>
#include <attmirror/base/table.hpp>

#include <vector>

namespace attmirror::graph_study {

// A setting with its runs, one a seed, from 1 on.
struct Case {
  Setting setting;
  std::vector<Measured> runs;
};

Table limits_table(const std::vector<Case>& cases);
Table stages_table(const std::vector<std::vector<TwoStages>>& all);  // by steps of stage 1, then by seed
Figure finite_figure(const std::vector<Case>& cases);
Figure growth_figure(const std::vector<Case>& cases);

}  // namespace attmirror::graph_study
