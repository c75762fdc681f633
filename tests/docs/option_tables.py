"""Holds docs/command.md against `attmirror SUBCOMMAND --help`: the subcommands, and the options of each, are the same.

A section of the page is about one subcommand and is named after it. Every option in the first column of its tables must
exist; every option of the help must be named somewhere in the section, in the one about all subcommands, or, where the
section says "as for train" or "as in train", in that of train. A default in the second column is that of the help.
"""

import re
import subprocess

PAGE = "docs/command.md"
COMMON = "Common to all subcommands"
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
HELP_LINE = re.compile(r"^ +(?:-\w, *)?--[a-z]")


def sections_of(text):
    """{title: text} of the page's second-level sections."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def listed_subcommands(text):
    """Those of the overview at the top of the page."""
    return re.findall(r"^attmirror ([a-z-]+)  ", text.split("\n## ", 1)[0], re.MULTILINE)


def options_in_tables(section):
    """Options in the first column. Words in it may be alternatives: `--a`, `--b`."""
    cells = [line.split("|", 2)[1] for line in section.replace(r"\|", "/").splitlines() if line.startswith("|")]
    return {option for cell in cells for option in OPTION.findall(cell)}


def options_of_help(text):
    """The options that lines of the help define, not those that descriptions and examples mention."""
    found = set()
    for line in text.splitlines():
        if HELP_LINE.match(line):
            # The definition ends where two blanks begin the description.
            found |= set(OPTION.findall(re.split(r"(?<=\S) {2,}", line.strip())[0]))
    return found


def defaults_of_help(text):
    """{option: default} of the options whose description ends with one in brackets."""
    found = {}
    for part in re.split(r"\n(?= +(?:-\w, *)?--[a-z])", text):
        lines = part.split("\n\n")[0]
        default = re.search(r"\[([^\[\]]*)\]\s*$", lines)
        if HELP_LINE.match(lines) and default and default.group(1) != "required":
            names = OPTION.findall(re.split(r"(?<=\S) {2,}|\n", lines.strip())[0])
            found |= {name: " ".join(default.group(1).split()) for name in names[:1]}
    return found


def rounded(text):
    """Numbers to three digits: 2.22e-16 on a page is 2.220446049250313e-16."""
    return re.sub(r"\d+\.?\d*(?:e[+-]?\d+)?", lambda number: f"{float(number.group()):.3g}", text)


def wrong_defaults(section, defaults):
    """[(option, on the page, in the help)] of the rows about one option. A page may say more after a semicolon."""
    wrong = []
    has_defaults = False
    for line in section.replace(r"\|", "/").splitlines():
        cells = [cell.strip().replace("`", "") for cell in line.split("|")]
        if not line.startswith("|") or len(cells) < 4:
            has_defaults = False
            continue
        has_defaults = has_defaults or cells[2] == "default"
        options = OPTION.findall(cells[1])
        if not has_defaults or len(options) != 1 or options[0] not in defaults:
            continue
        there, here = rounded(cells[2]), rounded(defaults[options[0]])
        if there != here and not there.startswith(here + ";"):
            wrong.append((options[0], cells[2], defaults[options[0]]))
    return wrong


def compare(text, help_of):
    """Messages. help_of(None) is the text of `attmirror --help`, help_of(NAME) that of a subcommand."""
    failures = []
    sections = sections_of(text)
    overview = help_of(None)
    listed = listed_subcommands(text)
    offered = re.findall(r"^  ([a-z][a-z-]+)  ", overview, re.MULTILINE)
    for name in sorted(set(listed) ^ set(offered)):
        where = "the page lists" if name in listed else "attmirror --help lists"
        failures.append(f'{PAGE}: only {where} the subcommand "{name}"')
    for name in listed:
        if name not in sections or name == "deep":  # deep's help is that of another program, with pages of its own
            continue
        section = sections[name]
        help_text = help_of(name)
        options = options_of_help(help_text)
        named = set(OPTION.findall(section)) | set(OPTION.findall(sections[COMMON])) | {"--help"}
        if re.search(r"as (?:for|in) \[?`?train\b", section):
            named |= set(OPTION.findall(sections["train"]))
        gone = sorted(options_in_tables(section) - options)
        failures += [f"{PAGE}: attmirror {name} has no option {option}" for option in gone]
        failures += [f"{PAGE}: {option} of attmirror {name} is missing" for option in sorted(options - named)]
        failures += [
            f'{PAGE}: the default of {option} of attmirror {name} is "{there}": the help says "{here}"'
            for option, there, here in wrong_defaults(section, defaults_of_help(help_text))
        ]
    return failures


def check_options(source, command):
    def help_of(name):
        words = [command, *([name] if name else []), "--help"]
        return subprocess.run(words, text=True, capture_output=True, check=True).stdout

    return compare((source / PAGE).read_text(encoding="utf-8"), help_of)
