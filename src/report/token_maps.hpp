// How attention on texts becomes HTML. Internal.
#pragma once

#include <attmirror/report/token_maps.hpp>

#include <string>
#include <string_view>

namespace attmirror {

std::string html_of(const TokenMaps& maps);

// A network's answer with a mark that says whether it was right; empty where there is no answer.
std::string verdict_html(std::string_view answer, TokenAttention::Verdict verdict);

// CSS that gives tokens their colors, by class name.
std::string token_css();

}  // namespace attmirror
