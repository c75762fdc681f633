// What the readers of .npz files owe whatever arrays they are given, for the fuzzer and for the ordinary tests that
// run its corpus.
//
// Bytes of an archive would be refused by their checksums before a reader sees them. So an input is a list of arrays,
// from which an honest archive is made. The first byte says which reader gets it:
//
//   k  a checkpoint        s  a max-margin solution        d  a dataset
//   f  final.npz of a run  t  trace.npz of a run           p  path.npz
//
// and each array is: its name and a zero byte; one byte for its type (n numbers, i whole numbers, x text); one for how
// many axes it has, one for the length of each; one for each value.
#pragma once

#include "data/text_array.hpp"
#include "result_checks.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/margin/svm_file.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace attmirror::fuzz {

// The bytes of an input, one by one; zeros after its end.
class ByteSource {
 public:
  explicit ByteSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const auto byte = std::to_integer<std::uint8_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return byte;
  }

 private:
  std::span<const std::byte> bytes_;
};

// Small whole numbers and what is hard about the others.
inline double number_of(std::uint8_t byte) {
  using Limits = std::numeric_limits<double>;
  constexpr double special[] = {Limits::quiet_NaN(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::max(),
                                Limits::denorm_min(),
                                -0.0,
                                0.5,
                                9007199254740993.0,
                                1e19,
                                -1e300};
  return byte < 246 ? static_cast<double>(byte) - 100 : special[byte - 246];
}
inline std::int64_t whole_number_of(std::uint8_t byte) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t special[] = {Limits::max(), Limits::min(), std::int64_t{1} << 32,
                                      -(std::int64_t{1} << 40)};
  return byte < 252 ? static_cast<std::int64_t>(byte) - 100 : special[byte - 252];
}

inline NamedArrays arrays_of(ByteSource bytes) {
  constexpr std::int64_t most_values = 4096;
  NamedArrays arrays;
  while (!bytes.empty() && arrays.size() < 40) {
    std::string name;
    // libzip takes names of printed letters only.
    while (const std::uint8_t letter = bytes.next())
      name += letter >= 32 && letter < 127 ? static_cast<char>(letter) : '?';
    const std::uint8_t type = bytes.next();
    Shape shape(bytes.next() % 4);
    std::int64_t count = 1;
    for (std::int64_t& extent : shape) count *= extent = bytes.next();
    if (name.empty() || count > most_values) continue;
    std::vector<double> numbers;
    std::vector<std::int64_t> whole;
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint8_t byte = bytes.next();
      if (type == 'i')
        whole.push_back(whole_number_of(byte));
      else if (type == 'x')
        text += static_cast<char>(byte);
      else
        numbers.push_back(number_of(byte));
    }
    if (type == 'i')
      arrays.emplace(name, Array(shape, std::span<const std::int64_t>(whole)));
    else if (type == 'x')
      arrays.emplace(name, text_array(text));
    else
      arrays.emplace(name, Array(shape, std::span<const double>(numbers)));
  }
  return arrays;
}

// A run whose other files are in order.
inline const ScratchFolder& folder_of_run() {
  static const ScratchFolder folder;
  static const bool made = [] {
    RunConfig config;
    config.train = {Block::W};
    write_file_atomically(folder / "config.json", to_json(config));
    write_file_atomically(folder / "result.json", text_of(RunResult()));
    NamedArrays final_arrays{{"format_version", Array::scalar(std::int64_t{1})},
                             {"step", Array::scalar(std::int64_t{0})}};
    save_npz(folder / "final.npz", final_arrays);
    NamedArrays trace{{"format_version", Array::scalar(std::int64_t{1})},
                      {"step", Array(std::span<const std::int64_t>())}};
    for (const char* name : {"loss", "max_softmax", "norm"})
      trace.emplace(name, Array(std::span<const double>()));
    save_npz(folder / "trace.npz", trace);
    return true;
  }();
  static_cast<void>(made);
  return folder;
}

// Two queries in three dimensions.
inline const Dataset& small_dataset() {
  static const Dataset data = generate(SphereData{.samples = 2, .tokens = 3, .dim = 3, .seed = 1});
  return data;
}

// What is loaded, written and loaded again is written as the same bytes.
template <class Rewrite>
void check_rewritten_file(const std::filesystem::path& path, Rewrite rewrite) {
  check_reading([&] {
    rewrite(path);
    const std::vector<std::byte> once = read_file(path);
    rewrite(path);
    if (read_file(path) != once) std::abort();
  });
}

inline void check_arrays(std::span<const std::byte> file) {
  if (file.empty()) return;
  static const ScratchFolder folder;
  const NamedArrays arrays = arrays_of(ByteSource(file.subspan(1)));
  const auto path = folder / "file.npz";
  switch (std::to_integer<char>(file[0])) {
    case 'k':
      save_npz(path, arrays);
      return check_rewritten_file(
          path, [](const std::filesystem::path& at) { save_checkpoint(at, load_checkpoint(at)); });
    case 'd':
      save_npz(path, arrays);
      return check_rewritten_file(
          path, [](const std::filesystem::path& at) { save_dataset(at, load_dataset(at)); });
    case 's':
      save_npz(path, arrays);
      return check_reading([&] {
        const SavedSolution solution = load_solution(path, small_dataset());
        if (solution.alpha) solution.alpha->validate(small_dataset());
      });
    case 'p':
      save_npz(folder / "path.npz", arrays);
      write_file_atomically(folder / "config.json", R"({"format": "attmirror path", "format_version": 1})");
      return check_reading([&] { load_path(folder.path()); });
    case 'f':
    case 't': {
      const auto name = file[0] == std::byte{'f'} ? "final.npz" : "trace.npz";
      const std::vector<std::byte> good = read_file(folder_of_run() / name);
      save_npz(folder_of_run() / name, arrays);
      check_reading([&] { load_run(folder_of_run().path()); });
      write_file_atomically(folder_of_run() / name, good);
      return;
    }
    default:
      return;
  }
}

}  // namespace attmirror::fuzz
