"""Divides shell blocks into commands, so that a failure can be told by its line."""

import dataclasses
import os
import re
import subprocess


@dataclasses.dataclass
class Command:
    """A shell command as bash reads it, with the output that the page shows (None where it shows none)."""

    line: int
    text: str
    output: list = None
    fails: int = 0
    about: bool = False


def is_complete(text):
    """Whether bash would run this, rather than wait for the rest of a loop, a quotation or a here-document."""
    if text.rstrip("\n").endswith("\\"):
        return False
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    # bash -n accepts a here-document that ends with the input, and says so.
    return done.returncode == 0 and "here-document" not in done.stderr


def is_idle(line):
    return not line.strip() or line.lstrip().startswith("#")


def commands_of_sh(block):
    commands = []
    pending = []
    for offset, line in enumerate(block.lines):
        if not pending and is_idle(line):
            continue
        if not pending:
            start = block.line + offset
        pending.append(line)
        if is_complete("\n".join(pending) + "\n"):
            commands.append(Command(start, "\n".join(pending)))
            pending = []
    if pending:  # what bash cannot read: it will say so itself
        commands.append(Command(start, "\n".join(pending)))
    return commands


def commands_of_console(block):
    commands = []
    for offset, line in enumerate(block.lines):
        if line.startswith("$ "):
            commands.append(Command(block.line + offset, line[2:], []))
        elif line.startswith("> ") and not commands[-1].output and not is_complete(commands[-1].text + "\n"):
            commands[-1].text += "\n" + line[2:]
        else:
            commands[-1].output.append(line)
    return commands


def commands_of(block):
    commands = commands_of_sh(block) if block.language == "sh" else commands_of_console(block)
    for command in commands:
        command.about = block.about
    commands[-1].fails = block.fails
    return commands


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def numbers_agree(shown, printed):
    """To 20 %: counts of iterations differ a little between instruction sets. Numbers below 1e-6 are rounding errors, and
    those above 1e15 one over such."""
    a, b = float(shown), float(printed)
    return abs(a - b) <= 0.2 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1e-6 or min(abs(a), abs(b)) > 1e15


def lines_agree(shown, printed, about):
    if not about or "..." in shown:
        pattern = ".*".join(re.escape(part) for part in shown.rstrip().split("..."))
        return re.fullmatch(pattern, printed.rstrip()) is not None
    shown_words, printed_words = NUMBER.split(shown), NUMBER.split(printed)
    same_words = [word.split() for word in shown_words] == [word.split() for word in printed_words]
    return same_words and all(map(numbers_agree, NUMBER.findall(shown), NUMBER.findall(printed)))


def outputs_agree(shown, printed, about=False):
    """Whether the output of a command is the one that its page shows. In a page "..." stands for any text within a line,
    and for any lines where a line has nothing else."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(outputs_agree(shown[1:], printed[skipped:], about) for skipped in range(len(printed) + 1))
    return bool(printed) and lines_agree(shown[0], printed[0], about) and outputs_agree(shown[1:], printed[1:], about)
