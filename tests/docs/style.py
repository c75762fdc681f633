#!/usr/bin/env python3
"""style.py SOURCE: forms that the texts of this project do not use, with a better one for each.

Looked at are the pages of the documentation, the sources (messages, help and comments) and the scripts; spelling in the pages
alone, because names of functions keep theirs. Prints file, line and the better form, and exits with 1 if one is found.
"""

import pathlib
import re
import sys

# (what is looked for, what to write). Spaces stand for any space, a new line included.
FORMS = (
    (r"experiments again", "reruns the experiments"),
    (r"passes all tests", "runs the full test suite"),
    (r"framed is", "the norm that theory predicts is outlined"),
    (r"norm that theory names|theory's norm is framed", "the norm that theory predicts"),
    (r"say all options|says all options", "list all options"),
    (r"tells? neither", "specifies neither ... nor"),
    (r"is no run of", "not an attmirror run folder"),
    (r"max_seconds,? [^.]*have passed", "stopped: time limit of ... s reached"),
    (r"for the error of their means", "their standard errors are unknown, so ours are used"),
    (r"from the own max-margin", "from each run's own max-margin solution"),
    (r"along the training", "during training"),
    (r"\bran?ks? rightly|\brightly\b", "correctly"),
    (r"\bexacter\b", "more exact"),
    (r"by strangers", "files that attmirror did not write are never touched"),
    (r"\bmends? it\b|\bmends\b", "fixes"),
    (r"\bis no (subcommand|option|column|dataset|folder|file|number)\b", "unknown ..., not a ..."),
)
SPELLING = (
    (r"\b(un)?(normal|maxim|minim|regular|orthogonal|initial|parameter|optim|summar|real|general|special)is(e|es|ed|ing|ation|ations|er|ers)\b", "-ize"),
    (r"\b(colour|behaviour|neighbour|favour|centre|analyse)\w*", "American spelling"),
)
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "examples/README.md")
TEXTS = PAGES + ("src/**/*.[ch]pp", "include/**/*.hpp", "python/**/*.py", "python/**/*.cpp", "examples/**/*.cpp", "examples/**/*.py",
                 "scripts/*.sh", "docs/site/*")


def found_in(text, forms):
    """(line, found, better) of each form in the text."""
    # A comment goes on after its slashes, a sentence after its line.
    flat = re.sub(r"\n(\s*)(//|#) ", lambda match: "\n" + " " * (len(match[0]) - 1), text)
    for pattern, better in forms:
        for match in re.finditer(pattern.replace(" ", r"\s+"), flat, re.IGNORECASE):
            yield flat.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), better


def check(source):
    failures, count = [], 0
    for globs, forms in ((TEXTS, FORMS), (PAGES, SPELLING)):
        for path in sorted({path for glob in globs for path in source.glob(glob) if path.is_file()}):
            count += 1
            for line, found, better in found_in(path.read_text(encoding="utf-8"), forms):
                failures.append(f'{path.relative_to(source)}:{line}: "{found}": better: {better}')
    return failures, count


def main():
    # The check finds what it looks for.
    sample = "// It passes\n// all tests, and normalises.\n"
    assert [line for line, _, _ in found_in(sample, FORMS)] == [1] and len(list(found_in(sample, SPELLING))) == 1
    failures, count = check(pathlib.Path(sys.argv[1]))
    print("\n".join(failures))
    print(f"{count} texts, {len(failures)} forms to replace")
    return 1 if failures or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
