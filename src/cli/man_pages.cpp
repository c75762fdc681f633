// attmirror man: the manual as man(1) shows it, made from the tree of options that reads the command line.
//
// A page is roff: a line that begins with a dot is a command, a backslash begins an escape, and "\-" is the minus
// sign that can be copied into a shell. Everything that comes from --help passes through roff_text(), which takes
// care of these.
#include "base/atomic_file.hpp"
#include "base/result_folder.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/man_texts.hpp"
#include "cli/option_tree.hpp"
#include "cli/options.hpp"
#include "cli/papers_cited.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

// Text that means itself.
std::string roff_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (result.empty() && (c == '.' || c == '\'')) result += "\\&";
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '`':
        result += "\\(ga";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff_text(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff_text(text)); }

bool is_name_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; }

// A word of prose. Options are bold: "(--steps)" has one.
std::string roff_word(std::string_view word) {
  const std::size_t begin = std::min(word.find_first_not_of('('), word.size());
  const std::size_t letter = word.find_first_not_of('-', begin);
  if (letter == begin || letter == std::string_view::npos || !is_name_letter(word[letter]))
    return roff_text(word);
  std::size_t end = letter;
  while (end < word.size() && is_name_letter(word[end])) ++end;
  return roff_text(word.substr(0, begin)) + bold(word.substr(begin, end - begin)) +
         roff_text(word.substr(end));
}

// Lines of a width that fits a terminal; every sentence begins one of its own, which roff wants.
std::string roff_prose(std::string_view text) {
  constexpr std::size_t width = 78;
  std::string result, line;
  const auto end_line = [&] {
    if (!line.empty()) result += line + '\n';
    line.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const std::string written = roff_word(word);
    if (line.size() + written.size() >= width) end_line();
    line += (line.empty() ? "" : " ") + written;
    // "A. Name:" is no end of a sentence.
    const bool initial = word.size() == 2 && std::isupper(static_cast<unsigned char>(word.front()));
    if (word.ends_with('.') && !initial) end_line();
  }
  end_line();
  return result;
}

// "zero|normal:STD": what is typed as it is in bold, what stands for something of the user's in italics.
std::string roff_type(const std::string& type) {
  std::string result;
  for (std::size_t begin = 0; begin < type.size();) {
    const bool mark = std::string_view("|:=,").find(type[begin]) != std::string_view::npos;
    const std::size_t end = mark ? begin + 1 : std::min(type.find_first_of("|:=,", begin), type.size());
    const std::string part = type.substr(begin, end - begin);
    // As for completion: W and KQ are words, STD is not. What follows a colon is the user's in any case.
    const bool after_colon = begin > 0 && type[begin - 1] == ':';
    const bool capitals =
        std::ranges::all_of(part, [](unsigned char c) { return std::isupper(c) || c == '_'; });
    begin = end;
    // "\\:" is where a long list may go on in the next line.
    if (mark)
      result += part + (part == "|" ? "\\:" : "");
    else
      result += capitals && (part.size() > 2 || after_colon || type == part) ? italic(part) : bold(part);
  }
  return result;
}

// --------------------------------------------------------------------------------------------------- the footer
// of --help

struct Footer {
  std::vector<std::string> notes;        // paragraphs before the examples
  std::vector<std::string> exit_status;  // those of them that speak of exit codes
  std::vector<std::string> examples;     // lines, without their indentation
};

Footer parse_footer(const std::string& text) {
  Footer footer;
  std::string paragraph;
  bool in_examples = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty())
      (paragraph.starts_with("Exit code ") ? footer.exit_status : footer.notes).push_back(paragraph);
    paragraph.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line == "Example:" || line == "Examples:") {
      end_paragraph();
      in_examples = true;
    } else if (in_examples) {
      if (!line.empty()) footer.examples.push_back(line.starts_with("  ") ? line.substr(2) : line);
    } else if (line.empty()) {
      end_paragraph();
    } else {
      paragraph += line + '\n';
    }
  }
  end_paragraph();
  return footer;
}

// Lines that are not indented are prose. "  NAME   text" begins an item, and deeper lines go on with it.
std::string roff_note(const std::string& paragraph) {
  std::string prose, items;
  for (std::size_t begin = 0; begin < paragraph.size();) {
    const std::size_t end = std::min(paragraph.find('\n', begin), paragraph.size());
    const std::string line = paragraph.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    if (indent == 0) {
      prose += line + ' ';
    } else if (indent == 2) {
      const std::size_t name_end = std::min(line.find(' ', indent), line.size());
      const std::size_t text = std::min(line.find_first_not_of(' ', name_end), line.size());
      items += fmt::format(".TP\n{}\n{}", bold(line.substr(indent, name_end - indent)),
                           roff_prose(line.substr(text)));
    } else {
      items += ".br\n" + roff_prose(line.substr(indent));
    }
  }
  return roff_prose(prose) + items;
}

// ---------------------------------------------------------------------------------------------------------------
// sections

std::string page_name(std::string command) {
  std::ranges::replace(command, ' ', '-');
  return command;
}

std::string roff_items(const NamedTexts& items) {
  std::string text;
  for (const auto& [name, description] : items)
    text += fmt::format(".TP\n{}\n{}", bold(name), roff_prose(description));
  return text;
}

std::string synopsis(const std::string& command, const CommandInfo& info) {
  if (!info.subcommands.empty())
    return fmt::format("{0} {1} [{2}]... [{3}]...\n.br\n{0} {4} | {5}\n", bold(command), italic("SUBCOMMAND"),
                       italic("OPTION"), italic("ARGUMENT"), bold("--help"), bold("--version"));
  std::string text = bold(command);
  for (const OptionInfo& option : info.options)
    if (option.required) text += fmt::format(" {} {}", bold(option.names.front()), roff_type(option.type));
  text += fmt::format(" [{}]...", italic("OPTION"));
  for (const OptionInfo& argument : info.arguments) {
    const std::string name = italic(argument.names.front()) + (argument.repeats ? "..." : "");
    text += argument.required ? " " + name : fmt::format(" [{}]", name);
  }
  return text + '\n';
}

std::string option_item(const OptionInfo& option, bool argument) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(argument ? italic(name) : bold(name));
  std::string heading = fmt::format("{}", fmt::join(names, ", "));
  if (!option.type.empty())
    heading += argument ? fmt::format(" ({})", roff_type(option.type)) : " " + roff_type(option.type);
  std::string text =
      option.description == "print this help" ? "print a summary of the options" : option.description;
  if (option.required && !argument) text += " (required)";
  if (!option.default_text.empty()) text += fmt::format(" (default: {})", option.default_text);
  return fmt::format(".TP\n{}\n{}", heading, roff_prose(text));
}

std::string options_section(const CommandInfo& info) {
  std::string text = ".SH OPTIONS\n";
  if (!info.arguments.empty()) text += ".SS Arguments\n";
  for (const OptionInfo& argument : info.arguments) text += option_item(argument, /*argument=*/true);
  for (const std::string& group : info.groups) {
    std::string items;
    for (const OptionInfo& option : info.options)
      if (option.group == group) items += option_item(option, /*argument=*/false);
    // An option without a group is hidden.
    if (!items.empty() && !group.empty()) text += fmt::format(".SS {}\n{}", roff_text(group), items);
  }
  return text;
}

std::string exit_status_section(const Footer& footer, bool root) {
  std::string text =
      ".SH EXIT STATUS\n" +
      roff_items(
          {{"0", "done; reaching --steps or a time limit counts as done"},
           {"1",
            "it ran, and the answer is negative: the run diverged, the problem is infeasible, the gap was "
            "not reached, an "
            "experiment differs"},
           {"2", "bad input: an option, a file or a combination of them; nothing was written"},
           {"3", "the environment failed: disk full, no permission, out of memory"},
           {"130, 143, 129",
            "interrupted by Ctrl-C, SIGTERM or SIGHUP; the checkpoint is kept, and a second Ctrl-C kills at once"}});
  // The root's own footer says the same in short.
  if (!root)
    for (const std::string& note : footer.exit_status)
      text += ".PP\nFor this subcommand: " + roff_prose(note.substr(std::string_view("Exit code ").size()));
  return text;
}

std::string examples_section(const Footer& footer) {
  if (footer.examples.empty()) return {};
  std::string text = ".SH EXAMPLES\n.EX\n";
  for (const std::string& line : footer.examples) text += roff_text(line) + '\n';
  return text + ".EE\n.nh\n";  // .EE allows hyphens again
}

std::string see_also_section(const CommandInfo& root, const std::string& command, const ManText& said) {
  std::vector<std::string> pages;
  if (command == root.name) {
    for (const CommandInfo& one : root.subcommands) pages.push_back(page_name(root.name + " " + one.name));
  } else {
    pages.push_back(page_name(root.name));
  }
  for (const std::string& page : said.see_also)
    if (std::ranges::find(pages, page) == pages.end()) pages.push_back(page);
  std::vector<std::string> references;
  for (const std::string& page : pages) references.push_back(bold(page) + "(1)");
  return fmt::format(".SH SEE ALSO\n{}\n", fmt::join(references, ",\n"));
}

// A page that mentions P1 says which paper that is.
std::string papers_section(const std::string& page) {
  const NamedTexts papers = papers_cited(page);
  return papers.empty() ? std::string() : ".SH REFERENCES\n" + roff_items(papers);
}

std::string man_page(const CommandInfo& root, const CommandInfo& info) {
  const bool is_root = &info == &root;
  const std::string command = is_root ? root.name : root.name + " " + info.name;
  const ManText said = man_text(command);
  const Footer footer = parse_footer(info.footer);
  std::string title = page_name(command);
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });

  const std::string summary = said.summary.empty() ? info.description : said.summary;
  std::string page = fmt::format(".TH {} 1 \"\" \"attmirror {}\" \"attmirror manual\"\n.nh\n.ad l\n",
                                 roff_text(title), version());
  page += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}.SH DESCRIPTION\n", roff_text(page_name(command)),
                      roff_text(summary), synopsis(command, info));
  std::string description = said.description.empty() ? info.description : said.description;
  for (std::size_t at; (at = description.find("\n\n")) != std::string::npos; description.erase(0, at + 2))
    page += roff_prose(description.substr(0, at)) + ".PP\n";
  page += roff_prose(description);
  if (!info.subcommands.empty()) {
    NamedTexts subcommands;
    for (const CommandInfo& one : info.subcommands) subcommands.emplace_back(one.name, one.description);
    page += ".SH SUBCOMMANDS\n" + roff_items(subcommands);
  }
  page += options_section(info);
  for (const std::string& note : footer.notes)
    page += (note == footer.notes.front() ? ".SH NOTES\n" : ".PP\n") + roff_note(note);
  page += exit_status_section(footer, is_root);
  NamedTexts environment = common_environment();
  environment.insert(environment.end(), said.environment.begin(), said.environment.end());
  page += ".SH ENVIRONMENT\n" + roff_items(environment);
  if (!said.files.empty()) page += ".SH FILES\n" + roff_items(said.files);
  page += examples_section(footer);
  page += papers_section(page);
  return page + see_also_section(root, command, said);
}

// ------------------------------------------------------------------------------------------------------------
// the command

struct ManOptions {
  CommonOptions common;
  std::string subcommand;
  std::filesystem::path output;
  bool all = false;
};

struct NamedPage {
  std::string file, text;  // "attmirror-train.1"
};

std::vector<NamedPage> chosen_pages(const CommandInfo& root, const ManOptions& options) {
  if (options.all && !options.subcommand.empty())
    throw bad_input(
        fmt::format("man is given the subcommand {} and --all: expected one of them", options.subcommand));
  if (options.all && options.output.empty())
    throw bad_input("--all writes files: expected -o FOLDER with it");
  std::vector<NamedPage> pages;
  if (options.subcommand.empty()) pages.push_back({page_name(root.name) + ".1", man_page(root, root)});
  for (const CommandInfo& command : root.subcommands)
    if (options.all || command.name == options.subcommand)
      pages.push_back({page_name(root.name + " " + command.name) + ".1", man_page(root, command)});
  if (!pages.empty()) return pages;
  std::vector<std::string_view> names;
  for (const CommandInfo& command : root.subcommands) names.push_back(command.name);
  throw bad_input(fmt::format("there is no man page of \"{}\": expected {}{}", options.subcommand,
                              fmt::join(names, ", "), did_you_mean(options.subcommand, names)));
}

int run_man(const CLI::App& root, const ManOptions& options) {
  const std::vector<NamedPage> pages = chosen_pages(option_tree(root), options);
  Json answer{{"status", "done"}, {"pages", Json::array()}};
  if (!options.output.empty()) make_folders(options.output);
  for (const NamedPage& page : pages) {
    if (options.output.empty()) {
      answer["pages"].push_back({{"name", page.file}, {"text", page.text}});
      if (!options.common.json) print(page.text);
      continue;
    }
    write_file_atomically(options.output / page.file, page.text);
    answer["pages"].push_back({{"name", page.file}, {"path", (options.output / page.file).string()}});
  }
  if (options.common.json) print_json(answer);
  if (!options.output.empty() && !options.common.json && !options.common.quiet)
    print(fmt::format("{} man {} in {}\n", pages.size(), pages.size() == 1 ? "page" : "pages",
                      options.output.string()));
  return done;
}

}  // namespace

Subcommand add_man(CLI::App& parent) {
  auto options = std::make_shared<ManOptions>();
  CLI::App& app = *parent.add_subcommand("man", "print man pages, or write them into a folder");
  add_text(app, "subcommand", options->subcommand, "SUBCOMMAND",
           "the subcommand whose page to print; by default the page of the command itself");
  add_flag(app, "--all", options->all, "write the pages of the command and of all its subcommands");
  add_path(app, "-o,--output", options->output, "FOLDER",
           "write files NAME.1 into this folder instead of printing");
  add_common_options(app, options->common);
  app.footer(fmt::format("Examples:\n  {0} man train | man -l -\n  {0} man --all -o share/man/man1",
                         parent.get_name()));
  return {&app, &options->common, [options, &parent] { return run_man(parent, *options); }};
}

}  // namespace attmirror::cli
