// All of attmirror in one include: core.hpp, and sweeps, reports and the published experiments.
#pragma once

#include <attmirror/core.hpp>
#include <attmirror/pages/run_page.hpp>
#include <attmirror/papers/experiment.hpp>
#include <attmirror/papers/finding.hpp>
#include <attmirror/papers/landscape.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/report/page.hpp>
#include <attmirror/report/patch_maps.hpp>
#include <attmirror/report/svg.hpp>
#include <attmirror/report/table_files.hpp>
#include <attmirror/report/token_maps.hpp>
#include <attmirror/sweep/attractors.hpp>
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/export.hpp>
#include <attmirror/sweep/many.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/row.hpp>
#include <attmirror/sweep/sweep.hpp>
#include <attmirror/sweep/which_margin.hpp>
