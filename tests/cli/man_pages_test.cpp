// attmirror man: a page for each subcommand, with everything that --help has, in roff that man(1) shows
// without warnings.
#include "cli/command.hpp"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

// The page as a reader sees it, but for line breaks: without fonts, escapes and lines of commands.
std::string shown(const std::string& page) {
  std::string text = std::regex_replace(page, std::regex(R"(\\f[BIR]|\\&|\\:)"), "");
  text = std::regex_replace(text, std::regex(R"(\\-)"), "-");
  return std::regex_replace(text, std::regex(R"(\\e)"), "\\");
}

std::string page_of(const Words& subcommand) {
  const Outcome outcome = attmirror_command(Words{"man"} + subcommand);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

// All subcommands, as the message for an unknown one lists them.
Words subcommands() {
  const std::string message = attmirror_command({"man", "nonsense"}).err;
  Words names;
  std::string list = message.substr(message.find("expected ") + 9);
  list.pop_back();
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    begin = end + 2;
  }
  return names;
}

std::set<std::string> long_options(const std::string& help) {
  std::set<std::string> names;
  const std::regex option(R"((^|\n)  (?:-\w,)?(--[a-z0-9-]+))");
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at)
    names.insert((*at)[2]);
  return names;
}

TEST(Man, HasAPageForEachSubcommand) {
  const Words names = subcommands();
  EXPECT_GE(names.size(), 13u);
  const std::string root = shown(page_of({}));
  EXPECT_TRUE(root.starts_with(".TH ATTMIRROR 1 ")) << root.substr(0, 80);
  for (const std::string& name : names) {
    const std::string page = page_of({name}), text = shown(page);
    EXPECT_NE(text.find("\n.SH NAME\nattmirror-" + name + " - "), std::string::npos) << name;
    for (const char* section :
         {"SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"})
      EXPECT_NE(page.find(std::string("\n.SH ") + section + "\n"), std::string::npos)
          << name << ": " << section;
    EXPECT_NE(text.find("ATTMIRROR_ISA"), std::string::npos) << name;
    EXPECT_NE(root.find("attmirror-" + name + "(1)"), std::string::npos) << name;
  }
}

TEST(Man, HasEveryOptionOfHelp) {
  for (const std::string& name : subcommands()) {
    const auto options = long_options(attmirror_command({name, "--help"}).out);
    // `attmirror deep --help` may be answered by another program, or by none.
    if (name != "deep") {
      EXPECT_GE(options.size(), 5u) << name;
    }
    const std::string page = shown(page_of({name}));
    for (const std::string& option : name == "deep" ? std::set<std::string>{"--json"} : options)
      EXPECT_NE(page.find(option), std::string::npos) << name << ": " << option;
  }
  const std::string train = shown(page_of({"train"}));
  EXPECT_NE(train.find("--lr NUMBER\nstep size (default: 0.1)\n"), std::string::npos);
  EXPECT_NE(train.find(".SS Common options\n"), std::string::npos);
  EXPECT_NE(train.find("attmirror train data.npz --p 3 --lr 0.1"), std::string::npos);
}

TEST(Man, SaysWhichPapersItMeans) {
  EXPECT_NE(page_of({"generate"}).find("https://arxiv.org/abs/2410.14581"), std::string::npos);
  EXPECT_EQ(page_of({"completion"}).find("arxiv"), std::string::npos);
}

// Lines that begin with a dot or a quote are commands to roff, and a minus must be one that can be copied.
TEST(Man, IsCleanRoff) {
  const std::regex command(R"(\.(TH|SH|SS|TP|PP|EX|EE|br|nh|ad)( .*)?)"), bare_minus(R"((^|[^\\])-)"),
      unknown_escape(R"(\\[^-&:ef(])");
  for (const std::string& name : subcommands()) {
    std::istringstream lines(page_of({name}));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('.')) {
        EXPECT_TRUE(std::regex_match(line, command)) << name << ": " << line;
      }
      EXPECT_FALSE(line.starts_with('\'') || line.empty()) << name << ": " << line;
      EXPECT_FALSE(std::regex_search(line, bare_minus)) << name << ": " << line;
      EXPECT_FALSE(std::regex_search(line, unknown_escape)) << name << ": " << line;
    }
  }
}

TEST(Man, IsShownWithoutWarnings) {
  if (std::system("man --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "man-db is not installed";
  const TemporaryFolder folder;
  const std::string pages = (folder / "man1").string(), warnings = (folder / "warnings").string();
  ASSERT_EQ(attmirror_command({"man", "--all", "-o", pages}).code, 0);
  for (const auto& page : std::filesystem::directory_iterator(pages)) {
    const std::string line =
        "man --warnings -E UTF-8 -l -Tutf8 -Z '" + page.path().string() + "' 2>'" + warnings + "' >/dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0) << page.path();
    EXPECT_EQ(file_text(warnings), "") << page.path();
  }
}

TEST(Man, WritesAllPagesIntoAFolder) {
  const TemporaryFolder folder;
  const std::string pages = (folder / "share/man1").string();
  const Outcome outcome = attmirror_command({"man", "--all", "-o", pages, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Words names = subcommands();
  EXPECT_EQ(Json::parse(outcome.out)["pages"].size(), names.size() + 1);
  EXPECT_EQ(file_text(pages + "/attmirror.1"), page_of({}));
  for (const std::string& name : names)
    EXPECT_EQ(file_text(pages + "/attmirror-" + name + ".1"), page_of({name})) << name;
  EXPECT_EQ(attmirror_command({"man", "--all", "-o", pages, "--quiet"}).out, "");
  EXPECT_NE(attmirror_command({"--help"}).out.find("\n  man "), std::string::npos);
}

TEST(Man, RefusesWhatMakesNoSense) {
  expect_refusal({"man", "fly"}, 2, {"there is no man page of \"fly\": expected generate, train"});
  expect_refusal({"man", "--all"}, 2, {"--all writes files: expected -o FOLDER with it"});
  expect_refusal({"man", "train", "--all", "-o", "x"}, 2, {"train", "--all"});
  expect_refusal({"man", "-o", "/proc/nowhere"}, 3, {"/proc/nowhere"});
}

}  // namespace
}  // namespace attmirror::test
