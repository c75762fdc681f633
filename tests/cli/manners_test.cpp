// What the command does around its subcommands: help, mistyped words, color, variables of the environment,
// signals that a background job ignores.
#include "base/atomic_file.hpp"
#include "cli/command.hpp"
#include "support/paths.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <regex>
#include <set>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;

bool has_deep() { return fs::exists(command_path().parent_path() / "attmirror-deep"); }

// Sets a variable for the commands that a test runs, and puts back what was there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    if (value)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Variable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Help, IsASubcommandToo) {
  EXPECT_EQ(attmirror_command({"help"}).out, attmirror_command({"--help"}).out);
  for (const char* name : {"train", "sweep", "completion"}) {
    const Outcome help = attmirror_command({"help", name});
    EXPECT_EQ(help.code, 0) << help.err;
    EXPECT_EQ(help.out, attmirror_command({name, "--help"}).out);
  }
  EXPECT_NE(attmirror_command({"help", "help"}).out.find("environment"), std::string::npos);
  EXPECT_NE(attmirror_command({"--help"}).out.find("\n  help "), std::string::npos);
  expect_refusal({"help", "trian"}, 2, {"unknown subcommand trian; did you mean train?"});
}

TEST(Help, OfDeepNeedsNoLibTorch) {
  for (const Words& words : {Words{"deep", "--help"}, Words{"help", "deep"}, Words{"deep", "help"}}) {
    const Outcome help = attmirror_command(words);
    EXPECT_EQ(help.code, 0) << help.err;
    for (const char* name : {"train", "tokenize", "attention-map", "score", "histogram", "report"})
      EXPECT_NE(help.out.find(std::string("\n  ") + name + " "), std::string::npos) << name << "\n"
                                                                                    << help.out;
    EXPECT_EQ(help.out.find("libtorch-dev") == std::string::npos, has_deep()) << help.out;
  }
  const Outcome nested = attmirror_command({"help", "deep", "train"});
  EXPECT_EQ(nested.code, 0) << nested.err;
  if (has_deep()) {
    EXPECT_EQ(nested.out, attmirror_command({"deep", "train", "--help"}).out);
    EXPECT_NE(nested.out.find("--set"), std::string::npos) << nested.out;
  } else {
    expect_refusal({"deep", "train", "x.toml"}, 2, {"attmirror-deep", "libtorch-dev"});
    expect_refusal({"deep"}, 2, {"attmirror-deep"});
  }
  // A man page is read on other machines, where what is missing here may be there.
  EXPECT_EQ(attmirror_command({"man", "deep"}).out.find("Not available"), std::string::npos);
}

TEST(Help, SaysWhichPapersItMeans) {
  EXPECT_NE(attmirror_command({"generate", "--help"}).out.find("\n  P1: A. K. Julistiono"),
            std::string::npos);
  EXPECT_EQ(attmirror_command({"info", "--help"}).out.find("arxiv"), std::string::npos);
}

TEST(Version, HasAShortOption) {
  EXPECT_EQ(attmirror_command({"-V"}).out, attmirror_command({"--version"}).out);
}

TEST(Mistyped, SubcommandsAndOptionsAreAnsweredWithTheNearest) {
  expect_refusal({"trian"}, 2, {"attmirror: unknown subcommand trian; did you mean train?\n"});
  expect_refusal({"next_token"}, 2, {"did you mean next-token?"});
  expect_refusal({"fly away"}, 2, {"unknown subcommand 'fly away': expected generate, train"});
  expect_refusal({"train", "x.npz", "--normalised"}, 2,
                 {"unknown option --normalised; did you mean --normalized? (see attmirror train --help)"});
  expect_refusal({"train", "x.npz", "--step=5"}, 2, {"unknown option --step; did you mean --steps?"});
  // The right option is missing, too, which is not what went wrong.
  expect_refusal({"generate", "--outptu", "x.npz"}, 2, {"unknown option --outptu; did you mean --output?"});
  expect_refusal({"--jsn", "info", "x"}, 2, {"unknown option --jsn; did you mean --json? (see attmirror"});
  expect_refusal({"train", "x.npz", "--wings"}, 2, {"unknown option --wings (see attmirror train --help)"});
}

TEST(Mistyped, WordsAreListedInTheOrderGiven) {
  expect_refusal({"info", "a", "b c", "d"}, 2, {"unexpected arguments: 'b c' d (see"});
  expect_refusal({"info", "a", "b"}, 2, {"unexpected argument: b (see"});
  expect_refusal(
      {"train", "x", "--stesp", "3", "--wings", "--lrr=2"}, 2,
      {"unknown options: --stesp (did you mean --steps?), --wings, --lrr (did you mean --lr?) (see"});
}

TEST(Mistyped, ValuesOfClosedListsAreAnsweredWithTheNearest) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto refuse = [&](const Words& words, std::string_view nearest) {
    expect_refusal(Words{"train", data} + words, 2, {nearest});
  };
  refuse({"--optimizer", "adm"}, "; did you mean \"adam\"?");
  refuse({"--optimizer", "steepset"}, "; did you mean \"steepest\"?");
  refuse({"--optimizer", "steepest", "--norm", "spectrl"}, "; did you mean \"spectral\"?");
  refuse({"--geometry", "shatten"}, "; did you mean \"schatten\"?");
  refuse({"--loss", "logistics"}, "; did you mean \"logistic\"?");
  refuse({"--params", "promt"}, "; did you mean \"prompt\"?");
  refuse({"--init", "norml:0.1"}, "; did you mean \"normal\"?");
  refuse({"--momentum", "heavyball"}, "; did you mean \"heavy-ball\"?");
  refuse({"--keep", "metric"}, "; did you mean \"metrics\"?");
  expect_refusal({"info", data, "--isa", "avx"}, 2,
                 {"expected sse2, avx2 or avx512; did you mean \"avx2\"?"});
  expect_refusal({"margin", data, "--problem", "atention"}, 2, {"; did you mean \"attention\"?"});
  expect_refusal({"margin", data, "--norm", "frobenious"}, 2, {"; did you mean \"frobenius\"?"});
  expect_refusal({"generate", "--kind", "spere", "-o", "x"}, 2, {"; did you mean \"sphere\"?"});
  expect_refusal({"reproduce", "p1-seting-a"}, 2, {"; did you mean \"p1-setting-a\"?"});
  expect_refusal({"completion", "bsh"}, 2, {"; did you mean \"bash\"?"});
  expect_refusal({"man", "trian"}, 2, {"; did you mean \"train\"?"});
  const std::string sweep = (folder / "s.toml").string();
  write_file_atomically(sweep, std::string_view("[train]\nnormalised = true\n"));
  expect_refusal({"sweep", sweep, "-o", (folder / "s.db").string()}, 2, {"; did you mean \"normalized\"?"});
}

// ---- the environment

// Names in capitals that stand in quotes in a source that reads the environment.
std::set<std::string> variables_of_sources() {
  std::set<std::string> names;
  const std::regex quoted(R"re("([A-Z][A-Z0-9]*_[A-Za-z0-9_]+|TERM|COLUMNS|RANK)")re");
  const auto read = [&](const fs::path& top, std::string_view reader) {
    for (const auto& entry : fs::recursive_directory_iterator(top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp" && extension != ".cu" && extension != ".py") continue;
      const std::string text = read_text_file(entry.path());
      if (text.find(reader) == std::string::npos) continue;
      for (std::sregex_iterator at(text.begin(), text.end(), quoted), end; at != end; ++at)
        names.insert((*at)[1]);
    }
  };
  read(source_folder() / "src", "getenv(");
  read(source_folder() / "src", "setenv(");
  read(source_folder() / "python/attmirror", "os.environ");
  return names;
}

TEST(Environment, IsListedInFull) {
  const Outcome help = attmirror_command({"help", "environment"});
  EXPECT_EQ(help.code, 0) << help.err;
  const std::string page = read_text_file(source_folder() / "docs/command.md");
  const std::set<std::string> names = variables_of_sources();
  EXPECT_GE(names.size(), 15u);
  for (const char* name :
       {"ATTMIRROR_ISA", "NO_COLOR", "TERM", "MASTER_PORT", "PMI_SIZE", "ATTMIRROR_STEP_LIBRARIES"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const std::string& name : names) {
    const std::regex word("\\b" + name + "\\b");
    EXPECT_TRUE(std::regex_search(help.out, word)) << name << " is not in attmirror help environment";
    EXPECT_TRUE(std::regex_search(page, word)) << name << " is not in docs/command.md";
  }
}

TEST(Environment, FitsTheScreen) {
  const std::string text = attmirror_command({"help", "environment"}).out;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
}

// ---- color

// A terminal to write to, whose other end is ours.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    const char* name = ::ptsname(master_);
    if (name != nullptr) slave_ = name;
  }
  ~Terminal() {
    if (master_ >= 0) ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_there() const { return !slave_.empty(); }

  // What the command shows on it. Somebody must read while it writes, since a terminal holds a few KiB only.
  std::string shows(const Words& words) {
    const int keep_open = ::open(slave_.c_str(), O_RDWR | O_NOCTTY);
    std::string text;
    std::thread reader([&] {
      std::array<char, 4096> piece;
      for (ssize_t got; (got = ::read(master_, piece.data(), piece.size())) > 0;) {
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.find('\x04') != std::string::npos) break;
      }
    });
    attmirror_command(words, {.stdout_to = slave_});
    // The end of what it has shown.
    const char end = '\x04';
    if (::write(keep_open, &end, 1) != 1) ADD_FAILURE() << "cannot write to " << slave_;
    reader.join();
    ::close(keep_open);
    return text.substr(0, text.find('\x04'));
  }

 private:
  int master_;
  std::string slave_;
};

TEST(Color, IsForTerminalsAlone) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const Words words{"train", data, "--steps", "5"};
  const Variable term("TERM", "xterm"), no_color("NO_COLOR", nullptr);
  EXPECT_EQ(attmirror_command(words).out.find('\x1b'), std::string::npos);
  Terminal terminal;
  if (!terminal.is_there()) GTEST_SKIP() << "there are no pseudo-terminals";
  const std::string colored = terminal.shows(words);
  EXPECT_NE(colored.find("\x1b[32mcompleted\x1b[0m"), std::string::npos) << colored;
  EXPECT_NE(colored.find("\x1b[1mstatus "), std::string::npos) << "the head of the table: " << colored;
  EXPECT_NE(terminal.shows({"--help"}).find("\x1b[1mSubcommands:\x1b[0m"), std::string::npos);
  EXPECT_EQ(terminal.shows(words + Words{"--json"}).find('\x1b'), std::string::npos);
}

TEST(Color, IsDeclinedByVariables) {
  Terminal terminal;
  if (!terminal.is_there()) GTEST_SKIP() << "there are no pseudo-terminals";
  const auto is_colored = [&] { return terminal.shows({"--help"}).find('\x1b') != std::string::npos; };
  {
    const Variable term("TERM", "xterm"), no_color("NO_COLOR", "1");
    EXPECT_FALSE(is_colored());
  }
  {
    const Variable term("TERM", "xterm"), no_color("NO_COLOR", "");
    EXPECT_TRUE(is_colored()) << "an empty NO_COLOR is none";
  }
  for (const char* dumb : {"dumb", ""}) {
    const Variable term("TERM", dumb), no_color("NO_COLOR", nullptr);
    EXPECT_FALSE(is_colored()) << dumb;
  }
}

// ---- signals

// A background job of a shell without job control, as in scripts, ignores SIGINT, so that Ctrl-C stops the
// script's foreground alone. That is inherited, and heeded; SIGTERM stops it and keeps the checkpoint.
TEST(Signals, ThatTheParentIgnoresStayIgnored) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto before = std::signal(SIGINT, SIG_IGN);
  RunningCommand command({"train", data, "--steps", "2000000000", "--record", "none", "--checkpoint-every",
                          "0", "-o", (folder / "run").string()});
  std::signal(SIGINT, before);
  FileChanges checkpoints(folder / "run" / "checkpoint.npz");
  ASSERT_TRUE(command.wait_until([&] { return checkpoints.seen() >= 1; }));
  EXPECT_FALSE(command.catches(SIGINT));
  EXPECT_TRUE(command.catches(SIGTERM));
  command.signal(SIGINT);
  const int seen = checkpoints.seen();
  ASSERT_TRUE(command.wait_until([&] { return checkpoints.seen() >= seen + 2; }))
      << "it goes on after SIGINT";
  command.signal(SIGTERM);
  const Outcome outcome = command.wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM);
  EXPECT_NE(outcome.err.find("interrupted at step"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace attmirror::test
