// Runs of attmirror 0.1.0: described, resumed and repeated by this version.
#include "cli/old_files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array all_sets{Isa::sse2, Isa::avx2, Isa::avx512};

Json answer_of(const Words& words, int code = 0) {
  const Outcome outcome = attmirror_command(words + Words{"--json"});
  EXPECT_EQ(outcome.code, code) << fmt::format("{}", fmt::join(words, " ")) << "\n" << outcome.err;
  return outcome.out.empty() ? Json() : Json::parse(outcome.out);
}

// Where the parts of a run of this name lie: itself, or the stages of a next-token run.
std::vector<std::string> run_folders_of(const OldFiles& files, const std::string& name) {
  std::vector<std::string> folders;
  for (const char* part : {"", "/W_ov", "/W_kq", "/joint"})
    if (is_run_folder(files / (name + part))) folders.push_back(name + part);
  return folders;
}

std::vector<OldCommand> trainings(const OldFiles& files) {
  std::vector<OldCommand> commands = files.commands({"runs", "killed", "interrupted"});
  std::erase_if(commands, [](const OldCommand& command) { return command.words[0] != "train"; });
  return commands;
}

// Options that `whole` has and `half` was to have in the end.
Words steps_of(const fs::path& whole) {
  const Json config = read_json(whole / "config.json");
  Words words{"--steps", fmt::format("{}", config["steps"].get<std::int64_t>())};
  if (config.contains("ov_steps") && config["ov_steps"].is_number())
    words = words + Words{"--ov-steps", fmt::format("{}", config["ov_steps"].get<std::int64_t>())};
  return words;
}

// The later --ov-steps of two is refused as given twice.
Words without_ov_steps(Words words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "--ov-steps") {
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
      break;
    }
  return words;
}

int code_of(const Json& result) { return result["status"] == "diverged" ? 1 : 0; }

void expect_same_old_run(const fs::path& whole, const fs::path& ours) {
  for (const char* name : {"final.npz", "trace.npz"}) expect_same_arrays(whole / name, ours / name);
  EXPECT_TRUE(same_bytes(file_text(whole / "metrics.jsonl"), file_text(ours / "metrics.jsonl"))) << ours;
  EXPECT_EQ(without_times(read_json(whole / "result.json")), without_times(read_json(ours / "result.json")));
  Json old_config = without_origin(read_json(whole / "config.json"));
  Json our_config = without_origin(read_json(ours / "config.json"));
  // There was nothing left to do for more steps.
  if (code_of(read_json(whole / "result.json")) == 1) our_config["steps"] = old_config["steps"];
  EXPECT_EQ(old_config, our_config);
}

// The commands that a page says its runs are repeated by, in the order of the runs.
std::vector<std::string> commands_on(const std::string& html) {
  std::vector<std::string> commands;
  for (std::size_t at = 0; (at = html.find("attmirror train ", at)) != std::string::npos;) {
    const std::size_t end = html.find('<', at);
    commands.push_back(html.substr(at, end - at));
    at = end;
  }
  return commands;
}

Words split_at_blanks(const std::string& line) {
  Words words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

TEST(OldRuns, AreReadOnEveryMachineWithAllThatTheySay) {
  for (const Isa isa : all_sets) {
    const OldFiles files(isa);
    for (const OldCommand& command : files.commands({"runs", "killed", "interrupted", "next-token"}))
      for (const char* part : {"/half", "/whole"}) {
        const std::vector<std::string> folders = run_folders_of(files, command.name + part);
        ASSERT_FALSE(folders.empty()) << command.name;
        for (const std::string& folder : folders) {
          SCOPED_TRACE(fmt::format("{}, {}", folder, to_string(isa)));
          const std::string text = file_text(files / (folder + "/config.json"));
          const Json written = Json::parse(to_json(parse_run_config(text, folder)));
          EXPECT_EQ(written, Json::parse(text));
          EXPECT_EQ(written["isa"], to_string(isa));
          const SavedRun run = load_run(files / folder);
          EXPECT_GT(run.step, 0);
          EXPECT_EQ(run.result.has_value(), fs::exists(files / (folder + "/result.json")));
          EXPECT_GT(run.records.size(), run.config.record == "none" ? 0U : 1U);
        }
      }
  }
}

TEST(OldRuns, AreDescribed) {
  const OldFiles files;
  for (const OldCommand& command : trainings(files)) {
    SCOPED_TRACE(command.name);
    const fs::path folder = files / (command.name + "/half");
    const Json answer = answer_of({"info", folder.string()});
    EXPECT_EQ(answer["kind"], "run");
    EXPECT_EQ(answer["config"], read_json(folder / "config.json"));
    const bool has_ended = fs::exists(folder / "result.json");
    const Json result = has_ended ? read_json(folder / "result.json") : Json();
    EXPECT_EQ(without_times(answer["result"]), without_times(result));
    EXPECT_EQ(answer["status"], has_ended ? result["status"] : "unfinished");
  }
}

TEST(OldRuns, GoOnToTheSameBits) {
  const OldFiles files;
  for (const OldCommand& command : files.commands({"runs", "killed", "interrupted", "next-token"})) {
    SCOPED_TRACE(command.name);
    const fs::path whole = files / (command.name + "/whole");
    const fs::path ours = files.copy(command.name + "/half");
    const Json result = read_json(whole / "result.json");
    const Json answer =
        answer_of(without_ov_steps(command.words) + steps_of(whole) + Words{"--resume", "-o", ours.string()},
                  code_of(result));
    EXPECT_EQ(without_times(answer), without_times(result));
    for (const std::string& folder : run_folders_of(files, command.name + "/whole"))
      expect_same_old_run(files / folder, ours / fs::relative(files / folder, whole));
    if (command.words[0] != "next-token") continue;
    expect_same_arrays(whole / "final.npz", ours / "final.npz");
    if (fs::exists(whole / "targets.npz")) expect_same_arrays(whole / "targets.npz", ours / "targets.npz");
    EXPECT_EQ(without_origin(read_json(whole / "config.json")),
              without_origin(read_json(ours / "config.json")));
  }
}

// From the start, too. Those of `train` are by the command of their report, below.
TEST(OldRuns, OfNextTokenAreMadeAgainByTheSameOptions) {
  const OldFiles files;
  for (const OldCommand& command : files.commands({"next-token"})) {
    SCOPED_TRACE(command.name);
    const fs::path whole = files / (command.name + "/whole"), ours = files.fresh(command.name);
    const Json result = read_json(whole / "result.json");
    answer_of(without_ov_steps(command.words) + steps_of(whole) + Words{"-o", ours.string()},
              code_of(result));
    for (const std::string& folder : run_folders_of(files, command.name + "/whole"))
      expect_same_old_run(files / folder, ours / fs::relative(files / folder, whole));
  }
}

TEST(OldRuns, AreRepeatedByTheCommandOfTheirReport) {
  const OldFiles files;
  std::vector<OldCommand> runs = trainings(files);
  // As on the page: what went wrong comes first.
  std::ranges::stable_partition(runs, [&](const OldCommand& run) {
    return code_of(read_json(files / (run.name + "/whole/result.json"))) == 1;
  });
  const std::string page = files.fresh("report.html");
  Words words{"report", "-o", page};
  for (const OldCommand& run : runs) words.push_back((files / (run.name + "/whole")).string());
  answer_of(words);
  const std::vector<std::string> commands = commands_on(file_text(page));
  ASSERT_EQ(commands.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(commands[i]);
    const fs::path whole = files / (runs[i].name + "/whole"), ours = files.fresh(runs[i].name);
    Words repeat = split_at_blanks(files.moved(commands[i]));
    repeat.erase(repeat.begin());
    ASSERT_EQ(repeat.back(), "run/");
    repeat.back() = ours.string();
    answer_of(repeat, code_of(read_json(whole / "result.json")));
    for (const char* name : {"final.npz", "trace.npz"}) expect_same_arrays(whole / name, ours / name);
  }
}

TEST(OldRuns, AreComparedWithOldSolutions) {
  const OldFiles files;
  const Json prompt =
      answer_of({"compare", (files / "runs/signum/half").string(), (files / "svm/prompt.npz").string(),
                 "--data", files.data("prompt.npz").string(), "--trace"});
  EXPECT_GT(prompt["trace"].size(), 1U);
  for (const char* norm : {"1", "1.75", "2", "inf", "nuclear", "spectral", "schatten"})
    for (const char* run : {"md-l3", "gd-kq", "steepest-nuclear", "adam-paper"}) {
      const Json answer = answer_of({"compare", (files / fmt::format("runs/{}/half", run)).string(),
                                     (files / fmt::format("svm/{}.npz", norm)).string(), "--data",
                                     files.data("sphere.npz").string()});
      EXPECT_EQ(answer["step"], 20) << run << " " << norm;
      EXPECT_EQ(answer["alpha_from"], "svm") << run << " " << norm;
    }
}

TEST(OldRuns, AreNotMixedWithAnotherInstructionSet) {
  for (const Isa isa : all_sets) {
    if (isa == active_isa()) continue;
    const OldFiles files(isa);
    const OldCommand command = files.commands({"runs"}).front();
    const std::string ours = files.copy(command.name + "/half");
    expect_refusal(
        command.words + Words{"--steps", "40", "--resume", "-o", ours}, 2,
        {fmt::format("isa is \"{}\" there and \"{}\" here", to_string(isa), to_string(active_isa()))});
  }
}

}  // namespace
}  // namespace attmirror::test
