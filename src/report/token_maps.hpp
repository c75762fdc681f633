// How attention on texts becomes HTML. Internal.
#pragma once

#include <attmirror/report/token_maps.hpp>

#include <string>

namespace attmirror {

std::string html_of(const TokenMaps& maps);

// CSS that gives tokens their colors, by class name.
std::string token_css();

}  // namespace attmirror
