#!/usr/bin/env python3
"""self_test.py [--compiler CXX]: the runner of the documentation's blocks finds what it is there to find.

Every rule has a page that breaks it, which must fail with a message at the right line, beside one that keeps it. The
command under test is a shell script, so nothing needs to be built.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs/site"))
import cpp_blocks
import doxygen_filter
import links
import option_tables
import prose
import shell_page
from commands import outputs_agree
from markdown_blocks import PageError, read_blocks
from names import Names

COMPILER = "c++"
SOURCE = pathlib.Path(__file__).resolve().parents[2]
FENCE = "`" * 3


def page(*blocks):
    """Text of a page. A block is "LANGUAGE", text and marks."""
    text = "# A page\n"
    for language, content, *marks in blocks:
        text += "\n" + "".join(f"<!-- test: {mark} -->\n" for mark in marks) + f"{FENCE}{language}\n{content}\n{FENCE}\n"
    return text


class Prose(unittest.TestCase):
    def found(self, text):
        words = prose.prose_of_page(text)
        return prose.spellings("p.md", words) + prose.phrases("p.md", words) + prose.missing_authors("p.md", words)

    def test_spelling_and_phrases(self):
        self.assertEqual(self.found("Normalized steps.\n"), [])
        self.assertIn('p.md:2: "normalis...": American', self.found("# A page\nNormalised steps.\n")[0])
        self.assertIn('p.md:1: "it is no": say', self.found("So it is no run of attmirror.\n")[0])
        self.assertEqual(self.found("The file, if it is no longer there.\n"), [])
        self.assertIn("a.cpp:1", prose.phrases("a.cpp", "// It passes\n// all tests.\n")[0])

    def test_code_is_left_alone(self):
        self.assertEqual(self.found(page(("text", "normalised")) + "`colour`, [here](a-colour.md), $\\text{colour}$\n"), [])
        self.assertEqual(prose.spellings("a.hpp", prose.comments_of("int colour;  // a color\n", "//")), [])
        self.assertEqual(len(prose.spellings("a.hpp", prose.comments_of("int c;  // a colour\n", "//"))), 1)

    def test_papers_have_authors(self):
        self.assertIn("cites P1 and does not say who wrote it", self.found("As in P1.\n")[0])
        self.assertEqual(self.found("As in P1 (Julistiono, Ataee Tarzanagh and\nAzizan).\n"), [])
        self.assertEqual(self.found("P4 is by Huang, Liang\nand Yang.\n"), [])


class Links(unittest.TestCase):
    def test_links(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder)
            (source / "docs").mkdir()
            (source / "docs/b.md").write_text("# Top\n\n## What `lr` means\n\n## Twice\n\n## Twice\n\n## To 10¹² steps\n", encoding="utf-8")

            def failures(text):
                (source / "a.md").write_text(text, encoding="utf-8")
                return links.check_links(source, ["a.md"])

            for good in ("docs/b.md", "docs/b.md#what-lr-means", "docs/b.md#twice-1", "docs", "https://example.org/x#y", "#own"):
                self.assertEqual(failures(f"# Own\n\n[a [b] `]` c]({good})\n"), [], good)
            self.assertEqual(failures(f"`[x](none.md)`\n\n{FENCE}sh\n[x](none.md)\n{FENCE}\n"), [])
            self.assertEqual(failures("\n[x](none.md)\n"), ["a.md:2: none.md: there is no none.md"])
            self.assertEqual(failures("![two\nlines](docs/c.svg)\n"), ["a.md:1: docs/c.svg: there is no docs/c.svg"])
            for anchor in ("what-means", "twice-2", "to-1012-steps", "to-10-steps", "to-10¹²-steps"):
                self.assertEqual(failures(f"[`x`](docs/b.md#{anchor})\n"),
                                 [f"a.md:1: docs/b.md#{anchor}: docs/b.md has no such heading"])


HEADER = """// What the file is about:
//
//   a <= b
#pragma once

namespace attmirror {

// For readers of the source.

// How long; see `steps`.
struct Options {
  int steps = 1;  // at most
  // Never 0.
  double lr = 0.1;
  void validate() const;

 private:
  int secret_ = 0;
};

// Both throw <Error>.
void first(int a);
void second(int a) {
  // not for the reference
  if (a > 0) return;
}

void bare();

}  // namespace attmirror
"""


class HeaderComments(unittest.TestCase):
    def test_the_filter(self):
        lines = doxygen_filter.Filter(HEADER.split("\n")).run()
        text = "\n".join(lines)
        self.assertEqual(lines[:2], ["/// @file", "/// What the file is about:"])
        self.assertIn("/// @code{.text}\n/// a <= b\n/// @endcode", text)
        self.assertIn("/// How long; see `steps`.\nstruct Options {\n  int steps = 1;  ///< at most\n  /// Never 0.\n", text)
        self.assertNotIn("For readers of the source", text)
        self.assertNotIn("secret_", text)
        self.assertRegex(text, r"/// Throws Error \(bad input\).*\n  void validate")
        self.assertIn("/// Both throw \\<Error\\>.\nvoid first", text)
        self.assertRegex(text, r"/// Both throw .*\nvoid second")
        self.assertIn("  // not for the reference\n", text)
        self.assertNotIn("///", text[text.index("void bare"):])


class Rules(unittest.TestCase):
    def refuse(self, message, *blocks):
        with self.assertRaisesRegex(PageError, message):
            read_blocks("p.md", page(*blocks))

    def test_languages(self):
        self.refuse(r"p\.md:3: the fenced block has no language", ("", "true"))
        self.refuse(r'p\.md:3: unknown language "bash"', ("bash", "true"))
        self.assertEqual([block.language for block in read_blocks("p.md", page(("sh", "true"), ("text", "x")))], ["sh", "text"])

    def test_marks(self):
        self.refuse('p.md:3: unknown mark "skipp"', ("sh", "true", "skipp (a GPU)"))
        self.refuse('"skip" needs a reason', ("sh", "true", "skip"))
        self.refuse("has no effect on a block of language text", ("text", "true", "fails 1"))
        self.refuse("takes an exit code", ("sh", "true", "fails 0"))
        self.refuse("no other marks", ("sh", "true", "skip (a GPU)", "fails 1"))
        with self.assertRaisesRegex(PageError, "p.md:1: a mark belongs"):
            read_blocks("p.md", "<!-- test: fails 1 -->\n\nProse.\n")

    def test_forms(self):
        with self.assertRaisesRegex(PageError, "p.md:1: the fenced block is not closed"):
            read_blocks("p.md", FENCE + "sh\ntrue\n")
        self.refuse("begins with a command", ("console", "output"))
        self.refuse("have no prompt", ("sh", "$ true"))
        self.refuse("is empty", ("sh", "# a comment"))

    def test_names(self):
        names = Names(SOURCE)
        good = page(("sh", "scripts/test.sh\ncmake --preset release\ncmake --build build/release --target attmirror",
                     "skip (long)"))
        bad = page(("sh", "scripts/tst.sh\ncmake --preset relase\ncmake --build x --target atmirror\nbuild/release/bin/am",
                    "skip (long)"))
        self.assertEqual([names.missing(block) for block in read_blocks("p.md", good)], [[]])
        self.assertEqual(len(names.missing(read_blocks("p.md", bad)[0])), 4)
        self.assertTrue(names.missing(read_blocks("p.md", page(("cmake", "find_package(attmirror 9.9)")))[0]))


class Options(unittest.TestCase):
    PAGE = ("attmirror train    trains\n\n## Common to all subcommands\n\n| `--json` | |\n\n## train\n\n"
            "| option | |\n| --- | --- |\n| `-o, --output FILE` | |\n| `--p`, `--lr` | not `--mass` |\n")
    HELP = "Options:\n  -o,--output FILE   where\n  --p NUMBER         of --other\n  --lr NUMBER\n  --json\n"

    def compare(self, text, help_text, overview="Subcommands:\n  train   trains\n"):
        return option_tables.compare(text, lambda name: help_text if name else overview)

    def test_differences_are_found(self):
        self.assertEqual(self.compare(self.PAGE, self.HELP), [])
        self.assertRegex(self.compare(self.PAGE, self.HELP.replace("--p ", "--q "))[0], "has no option --p")
        self.assertRegex(self.compare(self.PAGE, self.HELP + "  --mist\n")[0], "--mist of attmirror train is missing")
        self.assertRegex(self.compare(self.PAGE, self.HELP, "  train   trains\n  test   tests\n")[0], 'the subcommand "test"')


class Shell(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.command = pathlib.Path(folder.name, "attmirror")
        self.command.write_text('#!/bin/sh\necho "attmirror $*"\nexit "${CODE:-0}"\n', encoding="utf-8")
        self.command.chmod(0o755)

    def run_page(self, *blocks):
        return shell_page.run_page("p.md", read_blocks("p.md", page(*blocks)), SOURCE, shell_page.Machine(self.command))

    def passes(self, *blocks):
        result = self.run_page(*blocks)
        self.assertEqual(result.failures, [])
        return result

    def fails(self, message, *blocks):
        result = self.run_page(*blocks)
        self.assertEqual(len(result.failures), 1, result.failures)
        self.assertRegex(result.failures[0], message)
        return result

    def test_commands_run_in_order_in_one_shell_and_a_checkout(self):
        result = self.passes(("sh", "x=3\necho $x >f  # a comment"), ("sh", "grep 3 f && build/release/bin/attmirror\nattmirror"),
                             ("sh", "test -e examples/README.md\nfor i in 1 2; do\n  echo $i\ndone\ncat <<END\nit's\nEND"))
        self.assertEqual(result.ran, 7)

    def test_failures_are_found_at_their_lines(self):
        self.fails(r"p\.md:5: the command failed\n  \$ false", ("sh", "true\nfalse\ntrue"))
        self.fails(r"p\.md:4: ", ("sh", "false && true\ntrue"))
        self.fails(r"p\.md:4: ", ("sh", "false | true"))
        self.fails(r"p\.md:4: (.|\n)*no-such-file", ("sh", "cat no-such-file"))
        self.fails(r"p\.md:5: ", ("sh", "true", "before: false"))
        self.fails(r"p\.md:4: ", ("sh", "if true; then"))

    def test_exit_codes(self):
        self.passes(("sh", "CODE=2 attmirror", "fails 2"), ("sh", "true"))
        self.fails("exit code 0, expected 2", ("sh", "attmirror", "fails 2"))
        self.fails("exit code 1, expected 2", ("sh", "CODE=1 attmirror", "fails 2"))
        self.fails(r"p\.md:5: ", ("sh", "CODE=2 attmirror\nCODE=2 attmirror", "fails 2"))

    def test_console_output(self):
        self.passes(("console", "$ attmirror a\nattmirror a\n$ true\n$ echo 'b\n> c'\nb\nc"))
        self.fails(r"p\.md:4: the page shows other output", ("console", "$ attmirror a\nattmirror b"))
        self.fails("shows other output", ("console", "$ printf 'a\\nb\\n'\na"))
        self.passes(("console", "$ echo 1.1 x 3e-9\n1 x 1e-12", "about"))
        self.fails("shows other output", ("console", "$ echo 1.3 x\n1 x", "about"))
        self.fails("shows other output", ("console", "$ echo 1 y\n1 x", "about"))
        self.assertTrue(outputs_agree(["a...c", "...", "z"], ["abc", "1", "2", "z"]))
        self.assertFalse(outputs_agree(["a", "...", "z"], ["a", "1"]))

    def test_blocks_that_are_left_out_are_reported(self):
        os.environ.pop("ATTMIRROR_NIGHTLY", None)
        result = self.passes(("sh", "false", "skip (needs a GPU)"), ("sh", "false", "nightly (an hour)"),
                             ("sh", "false", "needs deep"), ("sh", "false", "needs no-such-program"))
        self.assertEqual([reason for _, reason in result.left_out],
                         ["needs a GPU", "nightly: an hour", "needs attmirror-deep beside the command", "needs no-such-program"])
        os.environ["ATTMIRROR_NIGHTLY"] = "1"
        self.addCleanup(os.environ.pop, "ATTMIRROR_NIGHTLY")
        self.fails(r"p\.md:5: ", ("sh", "false", "nightly (an hour)"))

    def test_files_and_python(self):
        self.passes(("toml", "a = 1", "file a.toml"), ("sh", "grep 'a = 1' a.toml"),
                    ("python", "import tomllib\nopen('b', 'w').write(str(tomllib.load(open('a.toml', 'rb'))['a']))"),
                    ("python", "assert tomllib"), ("sh", "grep 1 b"))
        self.fails('line 5, in <module>', ("python", "a = 1\nassert a == 2"))

    def test_the_source_tree_is_out_of_reach(self):
        self.passes(("sh", "echo spoiled >examples/README.md\necho new >scripts/new"))
        self.assertFalse((SOURCE / "scripts/new").exists())
        self.assertNotEqual((SOURCE / "examples/README.md").read_text(encoding="utf-8"), "spoiled\n")


class Cpp(unittest.TestCase):
    def compile(self, *blocks, torch=()):
        return cpp_blocks.compile_blocks(read_blocks("p.md", page(*blocks)), [COMPILER], [], [], list(torch))

    def test_good_blocks(self):
        _, left_out, failures = self.compile(
            ("cpp", "#include <vector>\nstd::vector<int> a(n);", "before: int n = 3;"), ("cpp", "double b = a[0] + n; char a = 'x';"),
            ("cpp", "#include <cmath>\nint main() { return std::sqrt(0.0) > 1; }"))
        self.assertEqual((left_out, failures), ([], []))

    def test_bad_blocks(self):
        for content in ("#include <vector>\nstd::vector<int> a = nothing;", "#include <vector>\nint main() { return nothing; }"):
            _, _, failures = self.compile(("cpp", content))
            self.assertEqual(len(failures), 1)
            self.assertIn("p.md:5", failures[0])
        with self.assertRaisesRegex(PageError, "p.md:4: the first C.. block of a page has the #include"):
            self.compile(("cpp", "int a = 1;"))

    def test_blocks_that_are_left_out_are_reported(self):
        _, left_out, failures = self.compile(("cpp", "wrong", "skip (not for compilers)"),
                                             ("cpp", "#include <torch/torch.h>\nwrong"))
        self.assertEqual([reason for _, reason in left_out], ["not for compilers", "needs LibTorch"])
        self.assertEqual(failures, [])
        _, _, failures = self.compile(("cpp", "#include <torch/torch.h>\nwrong"), torch=["no-such-folder"])
        self.assertEqual(len(failures), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default=COMPILER)
    options, rest = parser.parse_known_args()
    COMPILER = options.compiler
    unittest.main(argv=[sys.argv[0], *rest])
