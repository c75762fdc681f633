// Padded data in the command: with lengths they are the ragged data, without there is a warning, and info shows both.
#include "cli/command.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class PaddedData : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string ragged = path("ragged.npz"), padded = path("padded.npz"), unknown = path("unknown.npz");

  std::string path(const char* name) const { return (folder / name).string(); }

  // Ragged data of the generator, the same in a box whose padding is NaN, and with zeros and no lengths.
  void SetUp() override {
    ASSERT_EQ(attmirror_command({"generate", "--samples", "6", "--tokens", "8", "--min-tokens", "3", "--dim",
                                 "5", "--seed", "4", "-o", ragged})
                  .code,
              0);
    const Dataset data = load_dataset(ragged);
    NamedArrays arrays = load_npz(ragged);
    for (const bool with_lengths : {true, false}) {
      std::vector<double> box;
      for (std::ptrdiff_t i = 0; i < 6; ++i)
        for (std::ptrdiff_t t = 0; t < data.max_length(); ++t)
          for (std::ptrdiff_t j = 0; j < 5; ++j)
            box.push_back(t < data.length(i) ? data.tokens(i).eigen()(t, j)
                          : with_lengths     ? std::nan("")
                                             : 0);
      arrays.insert_or_assign("X", Array({6, data.max_length(), 5}, std::span<const double>(box)));
      if (!with_lengths) arrays.erase("lengths");
      save_npz(with_lengths ? padded : unknown, arrays);
    }
  }

  static Json json(const Words& words) {
    const Outcome outcome = attmirror_command(words + Words{"--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

constexpr const char* warning_text =
    "without lengths they are tokens like any other and become support tokens";

TEST_F(PaddedData, TrainsLikeRaggedDataToTheBit) {
  std::string weights[2];
  for (const std::string& data : {ragged, padded}) {
    const std::string run = path(data == ragged ? "run-ragged" : "run-padded");
    const Outcome outcome =
        attmirror_command({"train", data, "--steps", "200", "--normalized", "--quiet", "-o", run});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    weights[data == ragged ? 0 : 1] = file_text(run + "/final.npz");
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_F(PaddedData, InfoShowsTheLayout) {
  const Json a = json({"info", ragged}), b = json({"info", padded}), c = json({"info", unknown});
  EXPECT_EQ(a["layout"], "ragged");
  EXPECT_EQ(b["layout"], "padded");
  EXPECT_EQ(c["layout"], "box");
  EXPECT_EQ(a["fingerprint"], b["fingerprint"]);
  EXPECT_EQ(a["optimal"], b["optimal"]);
  EXPECT_NE(a["fingerprint"], c["fingerprint"]);
  EXPECT_FALSE(a.contains("warnings") || b.contains("warnings"));
  ASSERT_EQ(c["warnings"].size(), 1U);
  EXPECT_NE(c["warnings"][0].get<std::string>().find(warning_text), std::string::npos);
  const Outcome text = attmirror_command({"info", padded});
  EXPECT_NE(text.out.find("padded: X (6, 8, 5) with lengths;"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("of padding left out"), std::string::npos) << text.out;
  EXPECT_EQ(text.err, "");
  EXPECT_NE(attmirror_command({"info", ragged}).out.find("ragged: X ("), std::string::npos);
  const Outcome box = attmirror_command({"info", unknown});
  EXPECT_NE(box.out.find("box: X (6, 8, 5); "), std::string::npos) << box.out;
  EXPECT_NE(box.out.find("of zeros at the end of "), std::string::npos) << box.out;
  EXPECT_NE(box.err.find(warning_text), std::string::npos) << box.err;
}

// One line on stderr that names the file, the first sequence and what to do; in JSON too; not with --quiet.
TEST_F(PaddedData, WithoutLengthsAreWarnedOf) {
  const Dataset data = load_dataset(ragged);
  std::ptrdiff_t first = 0;
  while (data.length(first) == data.max_length()) ++first;
  const std::string begin = "attmirror: warning: " + unknown + ": sequence " + std::to_string(first) +
                            " ends in " + std::to_string(data.max_length() - data.length(first)) + " row";
  std::ofstream(folder / "sweep.toml")
      << "[data]\nfile = \"unknown.npz\"\n[train]\nsteps = 5\n[grid]\np = [2, 3]\n";
  for (const Words& command :
       {Words{"train", unknown, "--steps", "5"}, Words{"margin", unknown, "--norm", "2"},
        Words{"path", unknown, "--radii", "1,2"}, Words{"info", unknown},
        Words{"sweep", path("sweep.toml"), "-o", path("results.db"), "--overwrite"}}) {
    const Outcome outcome = attmirror_command(command);
    EXPECT_NE(outcome.err.find(begin), std::string::npos) << command[0] << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("give lengths (n)"), std::string::npos) << outcome.err;
    const Outcome as_json = attmirror_command(command + Words{"--json"});
    EXPECT_NE(as_json.err.find(begin), std::string::npos) << command[0] << ": " << as_json.err;
    const Json answer = Json::parse(as_json.out);
    ASSERT_TRUE(answer.contains("warnings")) << command[0] << ": " << as_json.out;
    EXPECT_EQ(answer["warnings"].size(), 1U);
    const Outcome quiet = attmirror_command(command + Words{"--json", "--quiet"});
    EXPECT_EQ(quiet.err.find("warning"), std::string::npos) << quiet.err;
    EXPECT_EQ(Json::parse(quiet.out)["warnings"], answer["warnings"]);
  }
}

TEST_F(PaddedData, RefusesLengthsThatDoNotFit) {
  NamedArrays arrays = load_npz(padded);
  arrays.insert_or_assign("lengths", Array(std::vector<std::int64_t>{1, 2, 9, 1, 1, 1}));
  save_npz(padded, arrays);
  for (const char* command : {"info", "train"})
    expect_refusal({command, padded}, 2,
                   {"padded.npz: lengths[2] is 9: expected 1 to 8, the tokens of X (6, 8, 5)"});
}

}  // namespace
}  // namespace attmirror::test
