#!/usr/bin/env python3
"""Tests the documentation: every shell block of a page runs, every C++ block compiles.

    run_blocks.py check                          the rules that all pages keep: languages, marks, names
    run_blocks.py links                          links between pages, and to files, lead somewhere
    run_blocks.py list                           the blocks that are marked, with their marks
    run_blocks.py options --command ATTMIRROR    docs/command.md has the options that the command has
    run_blocks.py shell --command ATTMIRROR PAGE...   runs the shell, console and Python blocks of pages
    run_blocks.py cpp --compiler CXX [--system DIR]... [--torch DIR]...   compiles the C++ blocks of all pages

Pages are README.md, CONTRIBUTING.md, examples/README.md and all of docs/ of --source (default: this checkout). Marks, which
are comments above a block, are explained in markdown_blocks.py. Exit code 0: all is well; 1: something fails; it is
printed with page and line, and so is every block that was not run, with the reason.
"""

import argparse
import json
import pathlib
import sys
import tomllib

import cpp_blocks
import links
import option_tables
import shell_page
from markdown_blocks import PageError, read_blocks
from names import Names

ROOT = pathlib.Path(__file__).resolve().parents[2]


def all_pages(source):
    pages = [name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md") if (source / name).exists()]
    return pages + sorted(str(path.relative_to(source)) for path in (source / "docs").rglob("*.md"))


def blocks_of(source, page):
    return read_blocks(page, (source / page).read_text(encoding="utf-8"))


def data_mistake(block):
    """What is wrong with a TOML or JSON block."""
    try:
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)
    except ValueError as error:
        return [f"{block.place}: not {block.language}: {error}"]
    return []


def check(source, pages):
    """All pages are read and looked at; nothing is run."""
    names = Names(source)
    failures = []
    for page in pages:
        try:
            for block in blocks_of(source, page):
                failures += data_mistake(block) + names.missing(block)
        except PageError as error:
            failures.append(str(error))
    return finish(f"{len(pages)} pages", [], failures)


def marks_of(block):
    marks = []
    for word in ("skip", "nightly"):
        if getattr(block, word):
            marks.append(f"{word} ({getattr(block, word)})")
    marks += [f"needs {need}" for need in block.needs]
    if block.fails:
        marks.append(f"fails {block.fails}")
    if block.about:
        marks.append("about")
    if block.file:
        marks.append(f"file {block.file}")
    if block.before:
        marks.append("before: " + " ".join(block.before.split()))
    return marks


def list_marked(source, pages):
    total = marked = 0
    for page in pages:
        for block in blocks_of(source, page):
            total += 1
            marks = marks_of(block)
            marked += bool(marks)
            for mark in marks:
                print(f"{block.place}: {block.language}: {mark}")
    print(f"{marked} of {total} blocks are marked")
    return 0


def finish(what, left_out, failures):
    for place, reason in left_out:
        print(f"not run: {place}: {reason}")
    for failure in failures:
        print(failure)
    print(f"{what}: {len(failures)} failed, {len(left_out)} blocks not run")
    return 1 if failures else 0


def run_shell(source, pages, command):
    machine = shell_page.Machine(command)
    ran, left_out, failures = 0, [], []
    for page in pages:
        result = shell_page.run_page(page, blocks_of(source, page), source, machine)
        ran += result.ran
        left_out += [(block.place, reason) for block, reason in result.left_out]
        failures += result.failures
    return finish(f"{ran} commands of {', '.join(pages)}", left_out, failures)


def compile_cpp(source, pages, options):
    blocks = [block for page in pages for block in blocks_of(source, page) if block.language == "cpp"]
    compiled, left_out, failures = cpp_blocks.compile_blocks(
        blocks, options.compiler.split(), [str(source / "include")], options.system, options.torch)
    return finish(f"{len(blocks)} blocks in {len(compiled)} translation units", left_out, failures)


def main():
    parser = argparse.ArgumentParser(description="Tests the code blocks of the documentation.")
    parser.add_argument("what", choices=("check", "links", "list", "options", "shell", "cpp"))
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="relative to the source tree; default: all")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT, help="the source tree")
    parser.add_argument("--command", help="options, shell: the attmirror to test")
    parser.add_argument("--compiler", default="c++", help="cpp: the compiler, with options if need be")
    parser.add_argument("--system", action="append", default=[], metavar="DIR", help="cpp: include folder of Eigen")
    parser.add_argument("--torch", action="append", default=[], metavar="DIR", help="cpp: include folder of LibTorch")
    options = parser.parse_intermixed_args()
    source = options.source.resolve()
    pages = options.pages or all_pages(source)
    if options.what in ("options", "shell") and not options.command:
        parser.error(f"{options.what} needs --command")
    try:
        if options.what == "check":
            return check(source, pages)
        if options.what == "links":
            linked = options.pages or [*pages, "CHANGELOG.md"]
            return finish(f"links of {len(linked)} pages", [], links.check_links(source, linked))
        if options.what == "list":
            return list_marked(source, pages)
        if options.what == "options":
            return finish("options of docs/command.md", [], option_tables.check_options(source, options.command))
        if options.what == "shell":
            return run_shell(source, pages, options.command)
        return compile_cpp(source, pages, options)
    except PageError as error:
        print(error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
