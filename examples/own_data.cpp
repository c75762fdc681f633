// Your own arrays: three sequences of different lengths. Token 0 of each carries the label, the query says
// "look for it", and training finds it. The same data as a file can be given to the command: attmirror train
// own_data.npz ...
#include <attmirror/attmirror.hpp>

#include <cstdio>

using namespace attmirror;

int main() {
  DatasetArrays arrays;
  arrays.lengths = {2, 4, 3};
  arrays.tokens.resize(9, 3);
  arrays.tokens << 1.0, 0.0, 0.9, 0.0, 1.0, -0.1,                    // sequence 0
      0.9, 0.1, -0.8, 0.0, 0.8, 0.2, -0.3, 1.0, 0.0, 0.1, 0.9, 0.1,  // sequence 1
      1.1, -0.1, 1.0, 0.2, 1.0, 0.0, 0.0, -0.9, 0.3;                 // sequence 2
  arrays.queries = Matrix::Constant(3, 3, 1.0);
  arrays.labels = {+1, -1, +1};
  arrays.decoder = Vector::Unit(3, 2);  // the third coordinate is the prediction

  try {
    const Dataset data(arrays);  // checks all of it: an Error names the first wrong entry
    save_dataset("own_data.npz", data);
    const Attention model{data};
    const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, {.steps = 500});
    std::printf("%s: selected %s, optimal %s\n", to_string(data).c_str(), to_string(run.selected).c_str(),
                to_string(optimal_tokens(data)).c_str());
    for (const Vector& s : attention_probabilities(model, run.last()))
      std::printf("  token 0 gets %.6f\n", s[0]);
  } catch (const Error& error) {
    std::fprintf(stderr, "own_data: %s\n", error.what());
    return error.kind() == ErrorKind::bad_input ? 2 : 3;
  }
}
