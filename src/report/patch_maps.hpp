// How attention on images becomes HTML. Internal.
#pragma once

#include <attmirror/report/patch_maps.hpp>

#include <string>

namespace attmirror {

std::string html_of(const PatchMaps& maps);

}  // namespace attmirror
