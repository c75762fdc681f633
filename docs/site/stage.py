#!/usr/bin/env python3
"""stage.py --source CHECKOUT --out FOLDER --doxygen XML [--reproduction FOLDER]: the pages of the site, for Sphinx.

The pages of the documentation are Markdown files that read well by themselves: on a code host, in an editor. They are
copied to FOLDER, with what only the site has:

  - docs/X becomes X, CONTRIBUTING.md and CHANGELOG.md are pages, and so is every file of the repository that a page links
    to (a program, a configuration), below source/. Tables and finished pages below docs are copied. Links are rewritten
    accordingly.
  - The list under a comment <!-- site: contents --> becomes a part of the table of contents, named by the heading above it.
  - <!-- site: cpp -->, <!-- site: python --> and <!-- site: figures --> are replaced by what is generated: the references,
    and the figures of `attmirror reproduce`.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import sys

import references

LINK = re.compile(r"(?P<open>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()(?P<target>[^)\s]+)(?P<close>\))")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
PLACES = {"README.md": "index.md", "docs/index.md": "index.md", "CONTRIBUTING.md": "contributing.md",
          "CHANGELOG.md": "changelog.md", "examples/README.md": "examples/index.md",
          "examples/python": "examples/index.md", "examples/deep": "examples/index.md",
          "examples/sweeps": "examples/index.md"}
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".toml": "toml", ".txt": "text", ".sh": "bash", ".cff": "yaml"}


def pages_of(source):
    """Every page, relative to the checkout."""
    docs = sorted(path.relative_to(source).as_posix() for path in (source / "docs").rglob("*.md"))
    return [*docs, "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"]


class Stage:
    """The folder that Sphinx reads. `sources`: files that pages link to, which become pages themselves; `files`: those below
    docs (a table, a page of its own), which are copied as they are."""

    def __init__(self, source, out):
        self.source = source
        self.out = out
        self.sources = set()
        self.files = set()

    def place(self, path):
        """Where a file or folder of the checkout is in the site."""
        if path in PLACES:
            return PLACES[path]
        if path.startswith("docs/"):
            if pathlib.PurePosixPath(path).suffix in (".csv", ".html"):
                self.files.add(path)
            return path[len("docs/"):]
        if path.startswith("include/attmirror/") and (self.source / path).is_dir():
            return f"reference/cpp/{pathlib.PurePosixPath(path).name}.md"
        if path.endswith(".ipynb"):
            return path
        if not (self.source / path).is_file():
            sys.exit(f"stage.py: a page links to {path}, which is not a file")
        self.sources.add(path)
        return f"source/{path}.md"

    def rewrite(self, page, text):
        """The page with its links as the site has them."""
        folder = pathlib.PurePosixPath(page).parent.as_posix()
        here = os.path.dirname(self.place(page))

        def replaced(match):
            target, _, anchor = match["target"].partition("#")
            if not target or re.match(r"[a-z]+:", target):
                return match[0]
            new = os.path.relpath(self.place(os.path.normpath(os.path.join(folder, target))), here or ".")
            return match["open"] + new + ("#" + anchor if anchor else "") + match["close"]

        def outside_code(text):
            # Inline code is set aside, so that brackets in it are no links.
            spans = []
            text = CODE_SPAN.sub(lambda match: spans.append(match[0]) or f"\0{len(spans) - 1}\0", text)
            return re.sub("\0(\\d+)\0", lambda match: spans[int(match[1])], LINK.sub(replaced, text))

        # Fenced blocks are every second piece, too.
        pieces = re.split(r"(^ *(?:`{3,}|~{3,})[^\n]*\n.*?^ *(?:`{3,}|~{3,}) *$)", text, flags=re.MULTILINE | re.DOTALL)
        return "".join(piece if index % 2 else outside_code(piece) for index, piece in enumerate(pieces))

    def write(self, path, text):
        path = self.out / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def source_pages(self):
        for path in sorted(self.sources):
            text = (self.source / path).read_text(encoding="utf-8").rstrip("\n")
            language = LANGUAGES.get(pathlib.PurePosixPath(path).suffix, "text")
            name = "cmake" if path.endswith("CMakeLists.txt") else language
            self.write(f"source/{path}.md", f"---\norphan: true\n---\n# {path}\n\n````{name}\n{text}\n````\n")


def contents(text):
    """Lists under <!-- site: contents --> as tables of contents; the list itself stays."""
    lines, heading, result = text.split("\n"), "", []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith("## "):
            heading = line[3:].strip()
        if line.strip() != "<!-- site: contents -->":
            result.append(line)
            index += 1
            continue
        index += 1
        entries = []
        while index < len(lines) and lines[index].strip():
            if match := re.match(r"\s*[-*] \[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)#]+)", lines[index]):
                entries.append(os.path.splitext(match[1])[0])
            result.append(lines[index])
            index += 1
        caption = [f":caption: {heading}"] if heading else []
        result += ["", "```{toctree}", ":hidden:", ":maxdepth: 2", *caption, "", *entries, "```"]
    return "\n".join(result)


def figures(reproduction):
    """The figures of a reproduction, by experiment."""
    if reproduction is None:
        return "*This copy of the site was built without the figures.*\n"
    parts = []
    for path in sorted((reproduction / "results").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        shown = [figure for figure in result["figures"] if (reproduction / "figures" / f"{result['id']}-{figure['id']}.svg").exists()]
        if not shown:
            continue
        counts = {}
        for finding in result["findings"]:
            counts[finding["verdict"]] = counts.get(finding["verdict"], 0) + 1
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        parts.append(f"## {result['title']}\n\n`attmirror reproduce {result['id']}` – {result['paper']}"
                     f"{', ' + result['item'] if result['item'] else ''}. {result['summary']}"
                     + (f" Verdicts of this quick run: {verdicts}." if verdicts else "") + "\n")
        for figure in shown:
            name = f"{result['id']}-{figure['id']}.svg"
            alt = re.sub(r"[\[\]\n]", " ", figure.get("description") or figure["title"])
            parts.append(f"![{alt}](../figures/{name})\n\n*{figure['title'].strip()}.* {figure['caption']}\n")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description="Prepares the pages of the documentation for Sphinx.")
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--doxygen", type=pathlib.Path, required=True)
    parser.add_argument("--reproduction", type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    stage = Stage(options.source.resolve(), options.out)
    generated = {"cpp": lambda: references.cpp_pages(options.doxygen, stage.write),
                 "python": lambda: references.python_pages(stage.write),
                 "figures": lambda: figures(options.reproduction)}
    for page in pages_of(stage.source):
        text = stage.rewrite(page, (stage.source / page).read_text(encoding="utf-8"))
        for name, make in generated.items():
            mark = re.compile(rf"^<!-- site: {name} -->$", re.MULTILINE)
            if mark.search(text):
                made = make()
                text = mark.sub(lambda _: made, text)
        stage.write(stage.place(page), contents(text))
    stage.source_pages()
    for path in sorted(stage.files):
        shutil.copy(stage.source / path, options.out / stage.place(path))
    shutil.copytree(stage.source / "docs/images", options.out / "images")
    for notebook in sorted((stage.source / "examples/python").glob("*.ipynb")):
        (options.out / "examples/python").mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook, options.out / "examples/python")
    if options.reproduction:
        shutil.copytree(options.reproduction / "figures", options.out / "figures")


if __name__ == "__main__":
    main()
