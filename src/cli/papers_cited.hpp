// P1 to P4, which help and man pages speak of: whoever reads one must learn which papers these are.
#pragma once

#include "cli/environment.hpp"

#include <string>

namespace attmirror::cli {

// "P1", with authors, title and address of the paper.
NamedTexts papers_by_number();

// Those of them that a text mentions.
NamedTexts papers_cited(const std::string& text);

}  // namespace attmirror::cli
