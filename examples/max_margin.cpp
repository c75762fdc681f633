// Where training goes: solve the max-margin problem of the tokens that a run selects, with a proof, and see the run
// approach it.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset data = generate(SphereData{.samples = 6, .tokens = 8, .dim = 10, .seed = 1});
  const Attention model{data};

  for (const double p : {1.1, 1.75, 3.0}) {
    const DescentRun run =
        descend(model, MirrorDescent{.p = p, .lr = 0.1, .normalized = true}, {.steps = 2'000});
    const Selection tokens = selected_tokens(model, run.last());
    const MarginSolution svm = max_margin(data, tokens, Norm::l(p));
    std::printf("p = %-4g %s\n", p, svm.brief().c_str());
    if (svm.status != MarginStatus::certified) return 1;

    // The same proof, computed once more from the data alone.
    const Certificate proof = certify(data, AttentionSvm{tokens}, Norm::l(p), svm.W, svm.lambda);
    std::printf("         no W of a norm below %.10f separates the tokens %s\n", proof.dual,
                to_string(tokens).c_str());
    std::printf("         %zu support tokens; the run is %.1e away from it in direction\n",
                svm.support.size(), directional_bregman(svm.W, run.last().W, p));
  }
}
