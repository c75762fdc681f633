#!/usr/bin/env python3
"""Writes the types of the compiled part: _core.pyi by nanobind, optimizers.pyi from the tables of the optimizers.

    make_stubs.py --extension _core.so --package python/attmirror --stubgen stubgen.py --output FOLDER

CMake runs it after linking the extension.
"""

import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def optimizer_stub(core, naming):
    """One class per method, with its keyword arguments as the table has them."""
    lines = [
        '"""The optimizers of attmirror: generated from the tables of their fields."""',
        "",
        "from typing import Any",
        "",
        "from . import _core",
        "",
        "class Optimizer:",
        "    method: str",
        "    def settings(self) -> dict[str, Any]: ...",
        "    @property",
        "    def geometry_norm(self) -> float | str | None: ...",
        "    @property",
        "    def _handle(self) -> _core.Optimizer: ...",
        "    def __getattr__(self, name: str) -> Any: ...",
        "    def __eq__(self, other: object) -> bool: ...",
        "    def __hash__(self) -> int: ...",
        "    def _repr_html_(self) -> str: ...",
        "    @staticmethod",
        "    def _of(handle: _core.Optimizer) -> Optimizer: ...",
        "",
        "def optimizer(method: str, **settings: Any) -> Optimizer: ...",
        "def methods() -> dict[str, type[Optimizer]]: ...",
        "",
    ]
    for method, title, fields in core.methods():
        name = naming.class_name(title)
        lines += [f"class {name}(Optimizer):", "    def __init__(", "        self,", "        *,"]
        for field in fields:
            lines.append(f"        {field[0]}: {naming.TYPES[field[2]]} | None = ...,")
        lines += ["    ) -> None:", '        """' + naming.docstring(title, fields, indent="        ").strip(),
                  '        """', ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Writes the types of the compiled part of attmirror.")
    for name in ("extension", "package", "stubgen", "output"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()
    extension = options.extension.resolve()
    subprocess.run([sys.executable, options.stubgen, "-q", "-m", "_core", "-i", extension.parent, "-o",
                    options.output / "_core.pyi"], check=True)
    # What is only known as an object there is an array, a number or a text here, as the package says.
    stub = options.output / "_core.pyi"
    text = re.sub(r"\bobject\b", "Any", stub.read_text(encoding="utf-8"))
    for name, arguments in {"dict": "str, Any", "list": "Any", "tuple": "Any, ..."}.items():
        text = re.sub(rf"\b{name}\b(?!\[)", f"{name}[{arguments}]", text)
    stub.write_text(text if "import Any" in text else "from typing import Any\n" + text, encoding="utf-8")
    core = load("_core", extension)
    naming = load("_naming", options.package / "_naming.py")
    (options.output / "optimizers.pyi").write_text(optimizer_stub(core, naming), encoding="utf-8")


if __name__ == "__main__":
    main()
