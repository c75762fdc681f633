// The papers that texts call P1 to P4. A page that mentions one lists it at its top. Internal.
#pragma once

#include <attmirror/report/page.hpp>

#include <array>
#include <string_view>
#include <vector>

namespace attmirror {

struct CitedPaper {
  std::string_view id, authors, title, year, address;
};

inline constexpr std::array cited_papers{
    CitedPaper{"P1", "A. K. Julistiono, D. Ataee Tarzanagh, N. Azizan",
               "Optimizing Attention with Mirror Descent: Generalized Max-Margin Token Selection", "2024",
               "https://arxiv.org/abs/2410.14581"},
    CitedPaper{"P2", "D. Ataee Tarzanagh, Y. Li, X. Zhang, S. Oymak",
               "Max-Margin Token Selection in Attention Mechanism", "2023",
               "https://arxiv.org/abs/2306.13596"},
    CitedPaper{"P3", "D. Ataee Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak",
               "Transformers as Support Vector Machines", "2023", "https://arxiv.org/abs/2308.16898"},
    CitedPaper{"P4", "R. Huang, Y. Liang, J. Yang",
               "Non-asymptotic Convergence of Training Transformers for Next-token Prediction", "2024",
               "https://arxiv.org/abs/2409.17335"},
};

// Those that a text of the page mentions, in this order.
std::vector<CitedPaper> papers_cited_by(const Page& page);

}  // namespace attmirror
