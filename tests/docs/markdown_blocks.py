"""Reads the fenced code blocks of a Markdown page, and the marks that say how a test treats them.

A mark is an HTML comment on the lines right above a fence, where readers do not see it:

    <!-- test: skip (needs a GPU) -->         never run; the reason is required
    <!-- test: nightly (two minutes) -->      run only if ATTMIRROR_NIGHTLY=1
    <!-- test: needs deep -->                 run only where it is: deep, mpi, or a program such as sqlite3
    <!-- test: fails 2 -->                    the last command of the block is meant to exit with 2
    <!-- test: about -->                      output of a console block: numbers may differ by 20 %, tiny ones at will
    <!-- test: file sweep.toml -->            the block is the content of this file, for the commands that follow
    <!-- test: before: COMMANDS OR C++ -->    what the block needs and the page does not show; may take several lines

A block can have several marks. Every fence names its language, one of those below.
"""

import dataclasses
import re

SHELL = ("sh", "console")
LANGUAGES = SHELL + ("cpp", "python", "cmake", "toml", "json", "text")
# Which languages a mark makes sense for; a mark elsewhere would have no effect, so it is a mistake.
MARKS = {
    "skip": SHELL + ("cpp", "python"),
    "nightly": SHELL + ("python",),
    "needs": SHELL + ("python",),
    "fails": SHELL,
    "about": ("console",),
    "file": ("toml", "json", "text", "sh", "python"),
    "before": SHELL + ("cpp", "python"),
}

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>.*)$")


class PageError(Exception):
    """A page that breaks the rules. The message begins with PAGE:LINE."""


@dataclasses.dataclass
class Block:
    """A fenced block. `line` is that of its first line of text, counted from 1."""

    page: str
    line: int
    language: str
    lines: list
    skip: str = ""
    nightly: str = ""
    needs: tuple = ()
    fails: int = 0
    about: bool = False
    file: str = ""
    before: str = ""

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def add_mark(block, text, place):
    """Adds the mark `text` (what stands between "<!-- test:" and "-->") to the block."""
    match = re.match(r"(?P<word>[a-z]+)\s*(?P<argument>.*)$", text.strip(), re.DOTALL)
    word = match["word"] if match else text.strip()
    argument = match["argument"].strip() if match else ""
    if word not in MARKS:
        raise PageError(f'{place}: unknown mark "{word}", expected one of {", ".join(MARKS)}')
    if block.language not in MARKS[word]:
        raise PageError(f'{place}: mark "{word}" has no effect on a block of language {block.language}')
    if word in ("skip", "nightly"):
        reason = re.fullmatch(r"\((.+)\)", argument, re.DOTALL)
        if not reason:
            raise PageError(f'{place}: mark "{word}" needs a reason in parentheses')
        setattr(block, word, reason[1])
    elif word == "needs":
        if not re.fullmatch(r"[\w.-]+", argument):
            raise PageError(f'{place}: mark "needs" takes one word, found "{argument}"')
        block.needs += (argument,)
    elif word == "fails":
        if not re.fullmatch(r"[1-9]\d*", argument):
            raise PageError(f'{place}: mark "fails" takes an exit code from 1, found "{argument}"')
        block.fails = int(argument)
    elif word == "about":
        if argument:
            raise PageError(f'{place}: mark "about" takes nothing, found "{argument}"')
        block.about = True
    elif word == "file":
        if not re.fullmatch(r"\w[\w.-]*", argument):
            raise PageError(f'{place}: mark "file" takes the name of a file, found "{argument}"')
        block.file = argument
    elif word == "before":
        if not argument.startswith(":") or not argument[1:].strip():
            raise PageError(f'{place}: mark "before" is written "before: COMMANDS"')
        block.before += argument[1:].strip() + "\n"


def read_blocks(page, text):
    """All fenced blocks of a page. `page` is its name in messages."""
    blocks = []
    marks = []  # (line, text) of those above the line at hand
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if line.lstrip().startswith("<!-- test:"):
            start = number
            while "-->" not in line:
                if number == len(lines):
                    raise PageError(f"{page}:{start}: the comment is not closed")
                line += "\n" + lines[number]
                number += 1
            marks.append((start, line.split("<!-- test:", 1)[1].split("-->", 1)[0]))
            continue
        fence = FENCE.match(line)
        if not fence:
            if marks:
                raise PageError(f"{page}:{marks[-1][0]}: a mark belongs on the line above a fenced block")
            continue
        place = f"{page}:{number}"
        language = fence["info"].strip()
        if not language:
            raise PageError(f"{place}: the fenced block has no language; output that is only shown is \"text\"")
        if language not in LANGUAGES:
            raise PageError(f'{place}: unknown language "{language}", expected one of {", ".join(LANGUAGES)}')
        block = Block(page, number + 1, language, [])
        for mark_line, mark in marks:
            add_mark(block, mark, f"{page}:{mark_line}")
        marks = []
        while number < len(lines) and lines[number].strip() != fence["ticks"]:
            block.lines.append(lines[number].removeprefix(fence["indent"]))
            number += 1
        if number == len(lines):
            raise PageError(f"{place}: the fenced block is not closed")
        number += 1
        check_block(block)
        blocks.append(block)
    if marks:
        raise PageError(f"{page}:{marks[-1][0]}: a mark belongs on the line above a fenced block")
    return blocks


def check_block(block):
    """What can be said of a block by looking at it."""
    if not any(line.strip() and not (line.startswith("#") and block.language == "sh") for line in block.lines):
        raise PageError(f"{block.place}: the block is empty")
    if block.language == "console" and not block.lines[0].startswith("$ "):
        raise PageError(f'{block.place}: a console block begins with a command after "$ "; commands alone are "sh"')
    if block.language == "sh" and any(line.startswith("$ ") for line in block.lines):
        raise PageError(f'{block.place}: commands of an sh block have no prompt; with output the block is "console"')
    if block.skip and (block.nightly or block.fails or block.before or block.needs or block.file):
        raise PageError(f'{block.place}: a skipped block has no other marks')
    if block.file and (block.nightly or block.fails or block.before):
        raise PageError(f'{block.place}: the content of a file has no other marks but "needs"')
