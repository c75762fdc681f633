// What came out of a study (sweep/study.hpp): in a sentence, as a table that fits a terminal, as a page.
// Internal.
#pragma once

#include "pages/which_margin_page.hpp"
#include "sweep/study.hpp"
#include <attmirror/base/table.hpp>
#include <attmirror/report/page.hpp>

#include <filesystem>
#include <string>

namespace attmirror {

// Mean over the starts that have one, its standard error, and how many there are.
struct StudyMean {
  double value = 0, error = 0;
  std::int64_t count = 0;
};
StudyMean study_mean(const std::vector<double>& values);

// Whether each optimizer comes near the largest margin in its own norm.
std::string study_conclusion(const Study& study, Lettering lettering);

// A line for each optimizer, at most 80 columns wide where words have their usual lengths.
Table study_table(const Study& study, Lettering lettering);

// `data` and `folder` are named on the page; `file` is the text of the sweep file.
Page study_page(const Study& study, const std::string& data, const std::filesystem::path& folder,
                const std::string& file);

}  // namespace attmirror
