// Causal self-attention: every token of a sequence asks, and attends to itself and what came before it.
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  const Dataset base = generate(SphereData{.samples = 2, .tokens = 5, .dim = 8, .seed = 4});
  DatasetArrays arrays;
  arrays.tokens = base.all_tokens().eigen();
  arrays.lengths = {5, 5};
  arrays.labels.assign(base.labels().begin(), base.labels().end());
  arrays.decoder = base.decoder().eigen().row(0).transpose();
  arrays.query_counts = {5, 5};
  arrays.query_index = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
  const Dataset data = with_causal_mask(Dataset(arrays));

  const Attention model{data};
  const DescentRun run =
      descend(model, MirrorDescent{.p = 2, .lr = 0.1, .normalized = true}, {.steps = 2'000});
  const Selection best = optimal_tokens(data);
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    std::printf("sequence %td, token %td selects %td of the first %td, best %td\n", data.sequence_of(j),
                data.query_index()[static_cast<std::size_t>(j)],
                run.selected.tokens[static_cast<std::size_t>(j)], data.attended_length(j),
                best.tokens[static_cast<std::size_t>(j)]);
  std::printf("all optimal: %s\n", run.selected == best ? "yes" : "no");
}
