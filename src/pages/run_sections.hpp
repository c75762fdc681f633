// The parts of a page that the results of users become. Internal.
#pragma once

#include <attmirror/report/page.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

// The sections of one kind of result, and what came out, in a sentence or two, computed from them: the page opens with
// it.
struct PagePart {
  std::string conclusion;
  std::vector<Section> sections;
};

// run_sections.cpp: an overview of all, where there are several, and a section for each.
PagePart run_sections(const std::vector<std::filesystem::path>& folders);

// training_sections.cpp: the same for folders of attmirror deep train.
PagePart training_sections(const std::vector<std::filesystem::path>& folders);

// path_sections.cpp: the same for folders of attmirror path.
PagePart path_sections(const std::vector<std::filesystem::path>& folders);

// solution_sections.cpp: files of attmirror margin; a table of all, where there are several, and a section for each.
PagePart solution_sections(const std::vector<std::filesystem::path>& files);

// sweep_sections.cpp: `id` is that of the section, and begins the ids of all that is in it.
PagePart sweep_section(const std::filesystem::path& database, const std::string& id);

// Logarithmic where all numbers that are positive span a factor of 100 or more.
Axis axis_for(std::string label, const std::vector<Series>& series,
              const std::vector<double> Series::*values);

// At most this many points of a curve, the first and the last among them.
std::vector<std::size_t> thinned(std::size_t count, std::size_t most = 300);

// "loss" of "W_opt/loss.bregman (2)": letters, digits and dashes for an id.
std::string id_of(std::string_view text);

}  // namespace attmirror
