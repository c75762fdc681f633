// Files that are part of the library. Internal.
#pragma once

#include <string_view>

namespace attmirror {

std::string_view page_css();
std::string_view page_js();
std::string_view patch_maps_js();  // for pages that show attention on images
std::string_view token_maps_js();  // for pages that show attention on texts
// plotly.min.js; empty where it was not there when attmirror was built.
std::string_view plotly_source();

}  // namespace attmirror
