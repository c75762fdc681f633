"""Compiles the C++ blocks of all pages, without making code (-fsyntax-only).

A block with main() is a program and is compiled as it is. Other blocks are pieces: their #includes go to the top, the
rest into a function for each page, where every block is a scope inside the one before. So a block sees what earlier
blocks of its page declare, and may declare it anew. Since a parse of attmirror.hpp takes seconds, the pieces of all
pages are one translation unit. All blocks that name LibTorch, whose headers take ten seconds, are another (programs
there are in a namespace each); it is left out where LibTorch is not found. #line makes the compiler report the lines of
the page.
"""

import os
import re
import subprocess

from markdown_blocks import PageError

TORCH = re.compile(r"\btorch::|\battmirror::deep::|\bat::Tensor|<attmirror/deep\.hpp>|<torch/")
MAIN = re.compile(r"^int main\(", re.MULTILINE)
INCLUDE = re.compile(r"^\s*#include\b")


def uses_torch(block):
    return TORCH.search(block.text + block.before) is not None


def located(block, keep):
    """The lines of a block for which keep() holds, at their places."""
    lines = [line if keep(line) else "" for line in block.lines]
    return f'#line {block.line} "{block.page}"\n' + "\n".join(lines) + "\n"


def includes_of(block):
    return located(block, INCLUDE.match) + "".join(line + "\n" for line in block.before.splitlines() if INCLUDE.match(line))


def rest_of(block):
    before = "".join(line + "\n" for line in block.before.splitlines() if not INCLUDE.match(line))
    return f'#line {block.line} "{block.page} (mark \'before\')"\n' + before + located(
        block, lambda line: not INCLUDE.match(line))


def is_program(block):
    return MAIN.search(block.text) is not None


def together(pages):
    """One translation unit of the blocks of {page: blocks}."""
    includes, code = "", ""
    for number, blocks in enumerate(pages.values()):
        includes += "".join(map(includes_of, blocks))
        for block in filter(is_program, blocks):
            code += f"namespace program_{number}_{block.line} {{\n{rest_of(block)}}}\n"
        piece_blocks = [block for block in blocks if not is_program(block)]
        code += f"void page_{number}() {{\n" + "".join("{\n" + rest_of(block) for block in piece_blocks)
        code += "}" * len(piece_blocks) + "\n}\n"
    return includes + code


def check_first_includes(pages):
    """A reader of a page must learn which header to include."""
    for blocks in pages.values():
        if not any(INCLUDE.match(line) for line in blocks[0].lines):
            raise PageError(f"{blocks[0].place}: the first C++ block of a page has the #include that it needs")


def units_of(all_blocks):
    """(name, source, whether it needs LibTorch) of each translation unit; the blocks in the order of the pages."""
    units = []
    plain, torch, whole = {}, {}, {}
    for block in all_blocks:
        whole.setdefault(block.page, []).append(block)
        if is_program(block) and not uses_torch(block):
            units.append((block.place, block.before + located(block, lambda line: True), False))
        else:
            (torch if uses_torch(block) else plain).setdefault(block.page, []).append(block)
    check_first_includes(whole)
    for blocks, needs_torch in ((plain, False), (torch, True)):
        if blocks:
            units.append(("blocks of " + ", ".join(blocks), together(blocks), needs_torch))
    return units


def compile_unit(source, compiler, includes):
    """The compiler's messages; empty if it is content."""
    # attmirror::attmirror brings the definition along (base/aligned.hpp asks for it).
    options = ["-std=c++20", "-fsyntax-only", "-w", "-DEIGEN_MAX_ALIGN_BYTES=64", *includes, "-x", "c++", "-"]
    done = subprocess.run([*compiler, *options], input=source, text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stderr or f"the compiler exited with {done.returncode}"


def include_options(project, system):
    # Compilers look into /usr/include anyway, and must not look there first.
    options = [f"-I{folder}" for folder in project]
    for folder in dict.fromkeys(map(os.path.normpath, system)):
        if folder != "/usr/include":
            options += ["-isystem", folder]
    return options


def compile_blocks(blocks, compiler, project, system, torch):
    """(names of units compiled, (name, reason) left out, messages). `torch`: include folders of LibTorch; []: it is not there."""
    compiled, left_out, failures = [], [], []
    todo = []
    for block in blocks:
        if block.skip:
            left_out.append((block.place, block.skip))
        else:
            todo.append(block)
    for name, source, needs_torch in units_of(todo):
        if needs_torch and not torch:
            left_out.append((name, "needs LibTorch"))
            continue
        message = compile_unit(source, compiler, include_options(project, system + (torch if needs_torch else [])))
        compiled.append(name)
        if message:
            failures.append(f"{name} does not compile:\n{message}")
    return compiled, left_out, failures
