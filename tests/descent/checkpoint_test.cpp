#include "base/atomic_file.hpp"
#include "descent/block_arrays.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/checkpoint.hpp>

#include <bit>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

void expect_same_numbers(const Parameters& a, const Parameters& b) {
  EXPECT_EQ(block_names(a), block_names(b));
  for (const Block& block : block_names(a)) {
    EXPECT_EQ(block_shape(a, block), block_shape(b, block)) << to_string(block);
    const auto x = block_values(a, block), y = block_values(b, block);
    EXPECT_TRUE(same_bits(std::span<const double>(x), std::span<const double>(y))) << to_string(block);
  }
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.rule, b.rule);
  EXPECT_EQ(a.data_fingerprint, b.data_fingerprint);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.seconds, b.seconds);
  expect_same_numbers(a.weights, b.weights);
  ASSERT_EQ(a.state.size(), b.state.size());
  for (const auto& [name, blocks] : a.state) {
    ASSERT_TRUE(b.state.contains(name)) << name;
    expect_same_numbers(blocks, b.state.at(name));
  }
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t r = 0; r < a.records.size(); ++r) {
    EXPECT_EQ(a.records[r].step, b.records[r].step);
    EXPECT_EQ(a.records[r].loss, b.records[r].loss);
    EXPECT_EQ(a.records[r].max_softmax, b.records[r].max_softmax);
    EXPECT_EQ(a.records[r].norm, b.records[r].norm);
    EXPECT_EQ(a.records[r].scheduled, b.records[r].scheduled);
    expect_same_numbers(a.records[r].parameters, b.records[r].parameters);
  }
}

class CheckpointFile : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "checkpoint.npz";
  const Dataset data = generate(SphereData{.samples = 5, .tokens = 4, .dim = 3, .seed = 2, .min_tokens = {}});

  Checkpoint made_by(const Attention& model, const Optimizer& optimizer, Keep keep = Keep::parameters) {
    DescentOptions options;
    options.steps = 37;
    options.keep = keep;
    options.init.kind = InitKind::normal;
    Descent descent(model, optimizer, options);
    descent.run();
    return descent.checkpoint();
  }
};

TEST_F(CheckpointFile, KeepsEveryBit) {
  const Attention kq(data, KQ{.rank = 2}, Logistic{}, {{Block::K, Block::Q, Block::v}});
  const Attention prompt(data, Prompt{});
  const Checkpoint checkpoints[] = {made_by(Attention(data), MirrorDescent{.p = 1.3, .normalized = true}),
                                    made_by(kq, MirrorDescent{.p = 3}), made_by(prompt, GradientDescent{}),
                                    made_by(prompt, GradientDescent{}, Keep::metrics)};
  for (const Checkpoint& checkpoint : checkpoints) {
    save_checkpoint(path, checkpoint);
    const Checkpoint loaded = load_checkpoint(path);
    expect_same(checkpoint, loaded);
    EXPECT_TRUE(is_finite(loaded));
    const std::vector<std::byte> first = read_file(path);
    save_checkpoint(path, loaded);
    EXPECT_EQ(read_file(path), first);
  }
}

TEST_F(CheckpointFile, KeepsOddValues) {
  Checkpoint checkpoint = made_by(Attention(data), MirrorDescent{});
  checkpoint.data_fingerprint = ~std::uint64_t{0};
  checkpoint.weights.W(0, 0) = -0.0;
  checkpoint.weights.W(0, 1) = std::numeric_limits<double>::denorm_min();
  checkpoint.state["second.moment"] = checkpoint.state.at("dual");  // a name with a dot
  checkpoint.records[1].parameters = {};                            // some records kept metrics only
  save_checkpoint(path, checkpoint);
  expect_same(checkpoint, load_checkpoint(path));
  EXPECT_TRUE(is_finite(checkpoint));
  checkpoint.weights.W(1, 1) = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(is_finite(checkpoint));
  save_checkpoint(path, checkpoint);
  expect_same(checkpoint, load_checkpoint(path));
}

TEST_F(CheckpointFile, ContinuesAsIfNeverStopped) {
  const Attention model(data, KQ{.rank = 2});
  const MirrorDescent rule{.p = 1.75, .normalized = true};
  DescentOptions options;
  options.init.kind = InitKind::uniform;
  options.steps = 200;
  const DescentRun whole = descend(model, rule, options);
  options.steps = 83;
  Descent part(model, rule, options);
  part.run();
  save_checkpoint(path, part.checkpoint());
  options.steps = 200;
  Descent rest(model, rule, options, load_checkpoint(path));
  const DescentRun run = rest.run();
  expect_same_numbers(whole.final_parameters, run.final_parameters);
  ASSERT_EQ(whole.records.size(), run.records.size());
  for (std::size_t r = 0; r < run.records.size(); ++r) {
    EXPECT_EQ(whole.records[r].step, run.records[r].step);
    expect_same_numbers(whole.records[r].parameters, run.records[r].parameters);
  }
}

TEST_F(CheckpointFile, RefusesEveryCutFile) {
  save_checkpoint(path, made_by(Attention(data), MirrorDescent{}));
  const std::vector<std::byte> whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    write_file_atomically(path, std::span(whole).first(size));
    expect_bad_input({"checkpoint.npz"}, [&] { load_checkpoint(path); });
  }
}

TEST_F(CheckpointFile, RefusesForeignAndIncompleteFiles) {
  expect_bad_input({"checkpoint.npz", "No such file"}, [&] { load_checkpoint(path); });
  save_dataset(path, data);
  expect_bad_input({"checkpoint.npz", "not an attmirror checkpoint"}, [&] { load_checkpoint(path); });
  save_checkpoint(path, made_by(Attention(data), MirrorDescent{}));
  const NamedArrays good = load_npz(path);
  for (const auto& [name, array] : good) {
    // Without a block of weights the file is one of a smaller model, which Descent refuses by its description.
    if (name.starts_with("weights.") || name.starts_with("state.") ||
        (name.starts_with("record.") && name.size() == 8))
      continue;
    NamedArrays arrays = good;
    arrays.erase(name);
    save_npz(path, arrays);
    expect_bad_input({"checkpoint.npz"}, [&] { load_checkpoint(path); });
  }
  NamedArrays arrays = good;
  arrays.at("format_version") = Array::scalar(std::int64_t{2});
  save_npz(path, arrays);
  expect_bad_input({"format_version is 2: this version of attmirror reads 1"},
                   [&] { load_checkpoint(path); });
  arrays = good;
  arrays.at("record.W") = Array({3, 3}, std::vector<double>(9));
  save_npz(path, arrays);
  expect_bad_input({"record.W has shape (3, 3)"}, [&] { load_checkpoint(path); });
}

}  // namespace
}  // namespace attmirror::test
