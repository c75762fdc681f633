#!/usr/bin/env python3
"""prose.py [SOURCE]: holds what readers read to the rules of the house.

The rules: none of the phrases below, which nobody would say, in pages, sources and scripts (messages, help and comments);
American spelling, as the options have it, in pages, in comments of the public headers and of the scripts; and a page that cites
P1 to P4 says who wrote them. Exit code 1: a line for each place that breaks one.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The beginning of a British spelling, and the American one. "artefact" is a verdict, and is spelled as the program does.
SPELLINGS = {
    "normalis": "normaliz", "regularis": "regulariz", "maximis": "maximiz", "minimis": "minimiz", "optimise": "optimize",
    "optimisation": "optimization", "orthogonalis": "orthogonaliz", "recognis": "recogniz", "discretis": "discretiz",
    "initialis": "initializ", "linearis": "lineariz", "utilis": "utiliz", "synchronis": "synchroniz",
    "generalis": "generaliz", "parameteris": "parameteriz", "summaris": "summariz", "penalis": "penaliz",
    "colour": "color", "behaviour": "behavior", "neighbour": "neighbor", "flavour": "flavor", "favour": "favor",
    "labelled": "labeled", "misspelt": "misspelled",
}

# A phrase, as a regular expression, and how to say it instead. A space stands for any space, a new line included.
PHRASES = {
    r"experiments again\b": "reruns the experiments",
    r"passes all tests": "runs the full test suite",
    r"[Ff]ramed is": "is outlined",
    r"norm that theory names": "the norm that theory predicts",
    r"max_seconds,? [^.\n]*have passed": "stopped: time limit of ... s reached",
    r"for the error of their means": "their standard errors are unknown, so ours are used",
    r"\bsays? all options": "list all options",
    r"\btells neither": "specifies neither",
    r"\bit is no\b(?![ ]longer)": "it is not a",
    r"(?<!there[ ])\bis no (subcommand|option|column|dataset|experiment|run|setting|number|file|folder|UTF-8|zip)\b": "is not a; unknown",
    r"\bare no UTF-8\b": "are not UTF-8",
    r"\bstands that of\b": "is used for",
    r"\bthe own\b": "its own",
    r"\balong the training\b": "during training",
    r"\brightly\b": "correctly",
    r"\bexacter\b": "more exact",
    r"\b(by|of|from) strangers\b": "untrusted; not written by attmirror",
    r"\bmends?\b": "fixes",
    r"\bof ours is\b|\bnone of ours\b": "not an attmirror file",
    r"\bsomebody else's\b": "not written by attmirror",
    r"\bgoes home\b|\bgo home\b": "finish",
}

AUTHORS = {"P1": "Julistiono", "P2": "Zhang and Oymak", "P3": "Thrampoulidis", "P4": "Huang, Liang and Yang"}


def prose_of_page(text):
    """The page with its code, formulas and link targets blanked out; line numbers stay."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    for pattern in (r"^ *```.*?^ *```", r"<!--.*?-->", r"\$\$.*?\$\$", r"`[^`\n]*`", r"\$[^$\n]*\$", r"\]\([^)\n]*\)"):
        text = re.sub(pattern, blank, text, flags=re.MULTILINE | re.DOTALL)
    return text


def comments_of(text, mark):
    """The source with everything but its comments removed; line numbers stay."""
    return "\n".join(line.partition(mark)[2] for line in text.split("\n"))


def spellings(place, prose):
    """British spellings, by line."""
    return [f'{place}:{number}: "{british}...": American spelling is "{american}..."'
            for number, line in enumerate(prose.split("\n"), 1) for british, american in SPELLINGS.items()
            if re.search(r"\b\w*" + british, line, re.IGNORECASE)]


def phrases(place, text):
    """Phrases that nobody would say, also over the end of a line, where a comment goes on after its slashes."""
    flat = re.sub(r"\n([ \t]*)(//|#) ", lambda match: "\n" + " " * (len(match[0]) - 1), text)
    return [f'{place}:{flat.count(chr(10), 0, match.start()) + 1}: "{" ".join(match[0].split())}": say "{better}"'
            for phrase, better in PHRASES.items() for match in re.finditer(re.sub(r"(?<!\[) ", r"\\s+", phrase), flat)]


def missing_authors(place, prose):
    """The papers that a page cites by a short name without saying who wrote them."""
    return [f"{place}: cites {paper} and does not say who wrote it ({author})" for paper, author in AUTHORS.items()
            if re.search(rf"\b{paper}\b", prose) and author not in re.sub(r"\s+", " ", prose)]


def mistakes(source):
    def files(*globs):
        paths = sorted({path for glob in globs for path in source.glob(glob) if path.is_file()})
        return [(str(path.relative_to(source)), path.read_text(encoding="utf-8")) for path in paths]

    found = []
    for page, text in files("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "docs/**/*.md"):
        prose = prose_of_page(text)
        found += spellings(page, prose) + phrases(page, prose) + missing_authors(page, prose)
    for pattern, mark in (("include/**/*.hpp", "//"), ("scripts/*.sh", "#")):
        for name, text in files(pattern):
            found += spellings(name, comments_of(text, mark))
    for name, text in files("src/**/*.[ch]pp", "include/**/*.hpp", "python/**/*.py", "python/**/*.cpp", "examples/**/*.cpp",
                            "examples/**/*.py", "scripts/*.sh", "docs/site/*.py"):
        found += phrases(name, text)
    return found


def main():
    source = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    found = mistakes(source)
    for line in found:
        print(line)
    print(f"{len(found)} places to rewrite")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
