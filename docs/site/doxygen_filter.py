#!/usr/bin/env python3
"""doxygen_filter.py HEADER: the header on standard output, its plain comments as Doxygen reads them.

The headers have ordinary comments, and conventions that this filter knows:

  - the comment at the top is about the file;
  - a comment right above a declaration is about it, and about the functions right below it, up to an empty line;
  - a comment behind a declaration, on its line, is about it;
  - what is indented within a comment is a formula or a program, and keeps its lines;
  - a comment with an empty line below it, or inside a function, is for those who read the source.

to_string(), parse_X(), validate() and the like mean the same wherever they occur, so they need no comment of their own:
CONVENTIONS has their sentences.
"""

import re
import sys

CONVENTIONS = (
    (r"\bvalidate\(", "Throws Error (bad input), naming the field and its value, unless every setting can be used."),
    (r"\bto_string\(", "The name as texts and files have it."),
    (r"\bparse_\w+\(", "Reads what to_string() writes. Throws Error (bad input) for any other text, and lists what was expected."),
    (r"\bDataset generate\(", "The dataset that these options describe."),
    (r"\boperator==\(", "Whether the two are equal, member by member."),
    (r"\bbegin\(\) const", "For range-based loops."),
    (r"\bend\(\) const", "For range-based loops."),
)
COMMENT = re.compile(r"^(\s*)//( ?)(.*)$")
TRAILING = re.compile(r'^(?P<code>[^"]*?(?:"(?:[^"\\]|\\.)*"[^"]*?)*[;,{})])(?P<gap>\s+)// (?P<text>.*)$')
SCOPE = re.compile(r"\b(namespace|struct|class|enum|union|extern)\b")
CODE = re.compile(r"\)\s*;\s*(//.*)?$|^\s*#include|\w::\w|\{\.\w+ = ")
# Enumerators at the end of a list have no comma behind them.
ENUMERATOR = re.compile(r"^\s*\w+(?: = [^,;]+)?\s+// ")


def escape(text):
    """Prose for Doxygen, in which @, \\, <, > and & mean something; not between backticks, which it leaves alone."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"([\\@<>&#%])", r"\\\1", parts[index]).replace("*", r"\*").replace("::", r"\::")
        parts[index] = re.sub(r"_(?=\W|$)|(?<!\w)_", r"\\_", parts[index])
    return "`".join(parts)


def doc_lines(texts):
    """The lines of a comment, without their slashes, as Doxygen wants them."""
    result, block = [], []

    def close():
        while block and not block[-1].strip():
            block.pop()
        if block:
            indent = min(len(line) - len(line.lstrip()) for line in block if line.strip())
            is_code = any(CODE.search(line) for line in block)
            begin = "@code{.cpp}" if is_code else "@code{.text}"
            result.extend([begin, *(line[indent:] for line in block), "@endcode", ""])
            block.clear()

    for text in texts:
        if text.startswith("  "):
            block.append(text)
            continue
        close()
        result.append(escape(text))
    close()
    return result


def has_trailing(line):
    """Whether a comment behind a declaration is on this line."""
    return not line.startswith("}  // namespace") and (TRAILING.match(line) or ENUMERATOR.match(line))


class Filter:
    """One pass over a header. `scopes`: what each open brace belongs to, "scope" or "body"."""

    def __init__(self, lines):
        self.lines = lines
        self.out = []
        self.scopes = []
        self.statement = ""
        self.group = []  # the comment of the declarations at hand, for functions that follow without one

    def in_body(self):
        return "body" in self.scopes

    def follow(self, code):
        """Keeps track of braces; literals and comments are gone from `code`."""
        code = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'', "0", code)
        code = re.sub(r"//.*", "", code)
        for character in code:
            if character == "{":
                head = re.sub(r"template\s*<[^{}]*?>\s*(?=struct|class|\w)", "", self.statement)
                is_scope = SCOPE.search(head) and not re.search(r"[=(]", head.split("final")[0].split(":")[0])
                self.scopes.append("scope" if is_scope else "body")
                self.statement = ""
            elif character == "}":
                if self.scopes:
                    self.scopes.pop()
                self.statement = ""
            elif character == ";":
                self.statement = ""
            else:
                self.statement += character
        self.statement += " "

    def emit_doc(self, indent, texts):
        self.out += [f"{indent}/// {line}".rstrip() for line in doc_lines(texts)]

    def comment_at(self, index):
        """The texts of the comment that begins there, and the index after it."""
        texts = []
        while index < len(self.lines) and (match := COMMENT.match(self.lines[index])):
            texts.append(match[3])
            index += 1
        return texts, index

    def inherits(self, line):
        """Whether a declaration without a comment is a function."""
        return not self.statement.strip() and re.match(r"\s*(?!return|if|for|using|private|public|friend class)[\w\[~].*\w\(", line)

    def run(self):
        index = 0
        if COMMENT.match(self.lines[0]):
            texts, index = self.comment_at(0)
            self.out.append("/// @file")
            self.emit_doc("", texts)
        column = -1  # where the comment behind the last declaration began
        while index < len(self.lines):
            line = self.lines[index]
            match = COMMENT.match(line)
            if line.strip() == "private:":
                index = self.skip_private(index)
                continue
            if self.in_body():
                self.out.append(line)
                self.follow(line)
                index += 1
                continue
            if match:
                if column >= 0 and abs(line.index("//") - column) < 2 and len(match[1]) > 4:
                    self.out.append(f"{match[1]}///< {escape(match[3])}")
                    index += 1
                    continue
                texts, after = self.comment_at(index)
                followed = after < len(self.lines) and not re.match(r"\s*(#|$)", self.lines[after])
                if followed and not re.match(r"\s*(\}|namespace\b|static_assert\b)", self.lines[after]):
                    self.emit_doc(match[1], texts)
                    self.group = texts
                else:
                    self.group = []
                column = -1
                index = self.declaration(after) if followed else after
                continue
            if not line.strip():
                self.group = []
                column = -1
                self.out.append(line)
                index += 1
                continue
            trailing = has_trailing(line)
            begins = not self.statement.strip()
            if begins and not trailing and self.inherits(line):
                for pattern, sentence in CONVENTIONS:
                    if re.search(pattern, line):
                        self.emit_doc("  ", [sentence])
                        break
                else:
                    if self.group:
                        self.emit_doc("  ", self.group)
            column = line.index("// ") if trailing else -1
            index = self.declaration(index)
        return self.out

    def skip_private(self, index):
        """The index of what follows the private part of a class."""
        indent = self.lines[index].index("private:")
        while not re.match(rf" {{{indent - 1}}}\}}| {{{indent}}}(public|protected):", self.lines[index]):
            index += 1
        return index

    def declaration(self, index):
        """Copies one line, with the comment behind it turned into Doxygen's."""
        line = self.lines[index]
        if has_trailing(line):
            at = line.rindex("  // ") if "  // " in line else line.index(" // ")
            self.out.append(f"{line[:at]}  ///< {escape(line[at:].strip()[3:])}")
        else:
            self.out.append(line)
        self.follow(line)
        return index + 1


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().split("\n")
    print("\n".join(Filter(lines).run()))


if __name__ == "__main__":
    main()
