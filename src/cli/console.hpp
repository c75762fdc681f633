// What the command says, and where: answers on stdout, everything else on stderr.
//
// With --json, stdout holds exactly one JSON object, also after an error. With --quiet there is no progress,
// no note and no summary of work whose outcome lies in files; answers that were asked for (compare, info,
// --json) and errors remain.
#pragma once

#include "base/json.hpp"
#include <attmirror/base/table.hpp>

#include <string>
#include <string_view>

namespace attmirror::cli {

enum ExitCode : int {
  done = 0,
  negative = 1,  // it ran, and the answer is no
  bad_input_exit = 2,
  environment = 3,
  signalled = 128,  // plus the number of the signal: 130 for Ctrl-C
};

// Writes to stdout and makes sure that it got there. Throws Error (environment): "cannot write to standard
// output: No space left on device". Names and texts may come from untrusted files: what would command the terminal
// is shown as \x1b (base/words.hpp), but line feeds stay; a name that belongs into one line is given through
// one_line(). In JSON it is \u001b, so that programs read what the file held. Terminals get color
// (screen.hpp), JSON never does.
void print(std::string_view text);
void print_json(const Json& object);
void print_json_text(std::string_view text);  // of an object that is written already

// "attmirror: TEXT" on stderr, in one line; the second where it is why nothing came of it.
void note(std::string_view text);
void note_error(std::string_view text);

// "attmirror: warning: TEXT" on stderr, once, and from then on a text of "warnings" in the object of print_json():
// what the user should know of the input although the command goes on. With --quiet it is in the object only.
void warn(std::string_view text);
void silence_warnings();

// "(3, 0, 7)", and "(3, 0, 7, ... 397 more)" for a long one.
std::string short_list(const std::vector<std::int64_t>& values);

}  // namespace attmirror::cli
