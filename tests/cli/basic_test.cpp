// The command as a whole: version, help, options that make no sense, generate, info, completion.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/data/safetensors.hpp>

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

Json json_of(const Outcome& outcome) {
  // parse() refuses anything after the one object.
  return Json::parse(outcome.out);
}

TEST(Command, SaysItsVersion) {
  const Outcome text = attmirror_command({"--version"});
  EXPECT_EQ(text.code, 0);
  EXPECT_TRUE(text.out.starts_with("attmirror 0.")) << text.out;
  const Outcome json = attmirror_command({"--version", "--json"});
  EXPECT_EQ(json.code, 0);
  for (const char* key : {"version", "commit", "isa", "components"})
    EXPECT_TRUE(json_of(json).contains(key)) << key;
}

TEST(Command, HelpsWithDefaultsAndExamples) {
  EXPECT_EQ(attmirror_command({"--help"}).code, 0);
  for (const char* name : {"generate", "train", "margin", "compare", "info", "completion"}) {
    const Outcome help = attmirror_command({name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_NE(help.out.find("Example"), std::string::npos) << name;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << name;
    EXPECT_NE(help.out.find("--threads"), std::string::npos) << name;
  }
  EXPECT_NE(attmirror_command({"train", "--help"}).out.find("step size [0.1]"), std::string::npos);
}

TEST(Command, RefusesWhatItDoesNotKnow) {
  const Outcome nothing = attmirror_command({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("Subcommands"), std::string::npos);
  expect_refusal({"fly"}, 2, {"unknown subcommand fly: expected generate, train"});
  expect_refusal({"train", "--wings", "2"}, 2, {"--help"});
  expect_refusal({"generate", "-o", "x.npz", "--foo"}, 2,
                 {"unknown option --foo", "attmirror generate --help"});
  expect_refusal({"generate"}, 2, {"--output is required"});
  expect_refusal({"info"}, 2, {"file is required"});
  expect_refusal({"info", "x", "--isa", "mmx"}, 2, {"isa is \"mmx\"", "avx2"});
  expect_refusal({"info", "x", "--threads", "-2"}, 2, {"threads is -2"});
  expect_refusal({"info", "x", "--threads", "two"}, 2, {"threads is \"two\": expected a whole number"});
}

TEST(Command, TellsErrorsInJsonToo) {
  const Outcome refused = attmirror_command({"info", "/no/such/file", "--json"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(json_of(refused)["status"], "error");
  EXPECT_NE(json_of(refused)["error"].get<std::string>().find("/no/such/file"), std::string::npos);
  EXPECT_EQ(refused.err, "attmirror: cannot read /no/such/file: No such file or directory\n");
  const Outcome parse = attmirror_command({"train", "--json", "--foo"});
  EXPECT_EQ(parse.code, 2);
  EXPECT_EQ(json_of(parse)["status"], "error");
}

TEST(Command, TakesJsonBeforeTheSubcommandToo) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  EXPECT_EQ(json_of(attmirror_command({"--json", "train", data, "--steps", "5"}))["steps"], 5);
}

TEST(Command, NoticesThatItsOutputIsLost) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const Outcome outcome = attmirror_command({"info", data}, {.stdout_to = "/dev/full"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "attmirror: cannot write to standard output: No space left on device\n");
}

TEST(Generate, MakesTheDataOfTheLibrary) {
  const TemporaryFolder folder;
  const std::string path = (folder / "data.npz").string();
  const Outcome outcome = attmirror_command({"generate", "--samples", "5", "--tokens", "7", "--dim", "3",
                                             "--seed", "4", "--min-tokens", "2", "-o", path, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Dataset expected =
      generate(SphereData{.samples = 5, .tokens = 7, .dim = 3, .seed = 4, .min_tokens = 2});
  EXPECT_EQ(load_dataset(path).fingerprint(), expected.fingerprint());
  EXPECT_EQ(json_of(outcome)["total_tokens"], expected.total_tokens());
  EXPECT_EQ(attmirror_command({"generate", "--kind", "joint", "-o", path}).code, 0);
  EXPECT_EQ(load_dataset(path).fingerprint(), generate(JointData{}).fingerprint());
}

TEST(Generate, RefusesBadSizesAndPlaces) {
  const TemporaryFolder folder;
  const std::string path = (folder / "data.npz").string();
  expect_refusal({"generate", "--samples", "0", "-o", path}, 2, {"samples is 0"});
  expect_refusal({"generate", "--dim", "-1", "-o", path}, 2, {"dim is -1"});
  expect_refusal({"generate", "--min-tokens", "9", "-o", path}, 2, {"min_tokens is 9"});
  expect_refusal({"generate", "--seed", "-1", "-o", path}, 2, {"seed is \"-1\""});
  expect_refusal({"generate", "--kind", "cube", "-o", path}, 2, {"kind is \"cube\""});
  expect_refusal({"generate", "--kind", "joint", "--dim", "3", "-o", path}, 2, {"--dim", "joint"});
  EXPECT_TRUE(folder.names().empty());
  small_data(folder);
  expect_refusal({"generate", "-o", path + "/x.npz"}, 3, {"cannot write", "Not a directory"});
  expect_refusal({"generate", "-o", "/proc/x.npz"}, 3, {"cannot write /proc/x.npz"});
  expect_refusal({"generate", "-o", "/dev/full"}, 3, {"cannot write /dev/full: No space left on device"});
  expect_refusal({"generate", "-o", folder.path().string()}, 3, {"Is a directory"});
}

TEST(Generate, LeavesTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), before = file_text(data);
  const Outcome outcome =
      attmirror_command({"generate", "--samples", "100", "-o", data}, {.file_size_limit = 4096});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
  EXPECT_EQ(file_text(data), before);
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(Info, KnowsEachKindOfFile) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const Json dataset = json_of(attmirror_command({"info", data, "--json"}));
  EXPECT_EQ(dataset["kind"], "dataset");
  EXPECT_EQ(dataset["samples"], 6);
  EXPECT_EQ(dataset["labels"]["+1"], 2);
  EXPECT_EQ(dataset["optimal"], Json({3, 2, 6, 2, 6, 2}));
  EXPECT_NE(attmirror_command({"info", data}).out.find("(3, 2, 6, 2, 6, 2)"), std::string::npos);

  const std::vector<double> numbers{1, 2, 3};
  save_npy(folder / "a.npy", Array({3, 1}, numbers));
  save_npz(folder / "a.npz", {{"numbers", Array({1, 3}, numbers)}});
  save_safetensors(folder / "a.safetensors", {{{"numbers", Array(numbers)}}, {}});
  const auto shape = [&](const char* name) {
    return json_of(attmirror_command({"info", (folder / name).string(), "--json"}))["arrays"][0]["shape"];
  };
  EXPECT_EQ(shape("a.npy"), Json({3, 1}));
  EXPECT_EQ(shape("a.npz"), Json({1, 3}));
  EXPECT_EQ(shape("a.safetensors"), Json({3}));
}

TEST(Info, ChecksTheAssumptionsOfTheTheorems) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder), joint = (folder / "joint.npz").string();
  const Json theory =
      json_of(attmirror_command({"info", data, "--theory", "--lr", "0.1", "--json"}))["theory"];
  ASSERT_EQ(theory["assumptions"].size(), 7u);
  const auto status = [&](std::size_t k) { return theory["assumptions"][k]["status"].get<std::string>(); };
  EXPECT_EQ(theory["tokens"], Json({3, 2, 6, 2, 6, 2}));
  EXPECT_EQ(status(0), "holds");  // unique best
  EXPECT_EQ(status(1), "fails");  // equal scores
  EXPECT_EQ(status(2), "holds");  // separable, with the margin of P1's published norm
  EXPECT_NEAR(theory["assumptions"][2]["value"].get<double>(), 1 / 2.66015691, 1e-7);
  EXPECT_EQ(status(6), "fails");  // 0.1 is above 1/L
  EXPECT_NEAR(theory["assumptions"][6]["value"].get<double>() * theory["lipschitz"].get<double>(), 1, 1e-12);
  const std::string text = attmirror_command({"info", data, "--theory", "--params", "KQ"}).out;
  EXPECT_NE(text.find("initial gradient  does not apply"), std::string::npos) << text;

  ASSERT_EQ(attmirror_command({"generate", "--kind", "joint-prompt", "-o", joint, "--quiet"}).code, 0);
  expect_refusal({"info", joint, "--theory"}, 2, {"no decoder v", "--select"});
  EXPECT_EQ(attmirror_command({"info", joint, "--theory", "--select", "1,1,1"}).code, 0);
  expect_refusal({"info", data, "--lr", "0.1"}, 2, {"--lr is given without --theory"});
  expect_refusal({"info", data, "--theory", "--params", "V"}, 2, {"params is \"V\"", "W, KQ or prompt"});
  expect_refusal({"info", data, "--theory", "--key-weights", data}, 2,
                 {"key-weights is given, but params is W"});
  expect_refusal({"info", data, "--theory", "--lr", "-1"}, 2,
                 {"lr is -1: expected a finite number greater than 0"});
  expect_refusal({"info", data, "--theory", "--mask", "causal"}, 2, {"causal"});
  const std::string svm = (folder / "svm.npz").string();
  ASSERT_EQ(attmirror_command({"margin", data, "-o", svm, "--quiet"}).code, 0);
  expect_refusal({"info", svm, "--theory"}, 2, {"--theory is given, but", "is not a dataset"});
}

TEST(Info, RefusesTheRest) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.txt") << "words";
  std::ofstream(folder / "empty.npz");
  expect_refusal({"info", (folder / "a.txt").string()}, 2, {"a.txt is neither"});
  expect_refusal({"info", (folder / "empty.npz").string()}, 2, {"empty.npz"});
  expect_refusal({"info", folder.path().string()}, 2, {"is not a run folder"});
  expect_refusal({"info", (folder / "none").string()}, 2, {"No such file or directory"});
  const std::string data = small_data(folder);
  std::filesystem::resize_file(data, std::filesystem::file_size(data) / 2);
  expect_refusal({"info", data}, 2, {"data.npz"});
}

TEST(Completion, ComesFromTheOptions) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = attmirror_command({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    for (const char* word :
         {"generate", "compare", "checkpoint-every", "logistic exponential linear", "W KQ prompt"})
      EXPECT_NE(outcome.out.find(word), std::string::npos) << shell << ": " << word;
  }
  expect_refusal({"completion", "tcsh"}, 2, {"shell is \"tcsh\": expected bash, zsh or fish"});
}

// What bash itself makes of the script.
std::string bash_completes(const TemporaryFolder& folder, const std::string& words) {
  const std::string script = (folder / "script.bash").string(), answer = (folder / "answer").string();
  std::ofstream(script)
      << attmirror_command({"completion", "bash"}).out << "COMP_WORDS=(" << words
      << ")\nCOMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))\n_attmirror\necho \"${COMPREPLY[*]}\"\n";
  if (std::system(("bash '" + script + "' > '" + answer + "' 2>&1").c_str()) != 0) return "bash failed";
  return file_text(answer);
}

TEST(Completion, WorksInBash) {
  if (std::system("bash -c 'complete -h' >/dev/null 2>&1") == 127) GTEST_SKIP() << "bash is not installed";
  const TemporaryFolder folder;
  EXPECT_EQ(bash_completes(folder, "attmirror tr"), "train\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --ch"), "--checkpoint-every\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --params K"), "KQ\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --optimizer s"), "steepest sign spectral signum\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --momentum e"), "ema ema:\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --schedule p"), "power power: polyak polyak:\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --norm n"), "nuclear\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --geometry s"), "schatten\n");
  EXPECT_EQ(bash_completes(folder, "attmirror train --json --ste"), "--steps\n");  // a flag takes no value
  EXPECT_EQ(bash_completes(folder, "attmirror train --steps --ste"), "\n");
  EXPECT_EQ(bash_completes(folder, "attmirror completion z"), "zsh\n");
  std::ofstream(folder / "weights.npz");
  const std::string stem = (folder / "weig").string();
  EXPECT_EQ(bash_completes(folder, "attmirror info " + stem), stem + "hts.npz\n");
}

}  // namespace
}  // namespace attmirror::test
