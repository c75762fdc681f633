#include "cli/papers_cited.hpp"

#include <cctype>

namespace attmirror::cli {

NamedTexts papers_by_number() {
  return {
      {"P1",
       "A. K. Julistiono, D. Ataee Tarzanagh, N. Azizan: Optimizing Attention with Mirror Descent: "
       "Generalized Max-Margin Token Selection (2024). https://arxiv.org/abs/2410.14581"},
      {"P2",
       "D. Ataee Tarzanagh, Y. Li, X. Zhang, S. Oymak: Max-Margin Token Selection in Attention Mechanism "
       "(2023). https://arxiv.org/abs/2306.13596"},
      {"P3",
       "D. Ataee Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak: Transformers as Support Vector Machines "
       "(2023). https://arxiv.org/abs/2308.16898"},
      {"P4",
       "R. Huang, Y. Liang, J. Yang: Non-asymptotic Convergence of Training Transformers for Next-token "
       "Prediction (2024). https://arxiv.org/abs/2409.17335"},
  };
}

NamedTexts papers_cited(const std::string& text) {
  NamedTexts papers;
  const auto is_letter = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  for (const auto& [name, title] : papers_by_number())
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      if ((at > 0 && is_letter(at - 1)) || is_letter(at + name.size())) continue;
      papers.emplace_back(name, title);
      break;
    }
  return papers;
}

}  // namespace attmirror::cli
