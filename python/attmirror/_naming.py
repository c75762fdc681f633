"""How optimizers are named and described in Python, from the tables of their fields.

Imported by the package and by the script that writes its types, so it imports nothing of the package.
"""

from __future__ import annotations

from typing import Any

# What a field of a kind takes, as a type.
TYPES = {
    "flag": "bool",
    "count": "int",
    "seed": "int",
    "number": "float",
    "word": "str",
    "norm": "float | str",
    "path": "str",
    "pair": "tuple[float, float]",
}


def class_name(title: str) -> str:
    """`mirror descent` is MirrorDescent; AdaGrad stays as it is."""
    return "".join(word[:1].upper() + word[1:] for word in title.split())


def docstring(title: str, fields: list[tuple[Any, ...]], indent: str = "    ") -> str:
    """The docstring of a class, in the style of NumPy's."""
    lines = [f"{title[:1].upper()}{title[1:]}.", "", "Parameters", "----------"]
    for name, default, kind, help_text, allowed, needed, shown in fields:
        what = "required" if needed else f"default {shown or repr(default)}"
        choices = allowed.replace("|", ", ") if kind in ("word", "norm") else allowed
        lines.append(f"{name} : {TYPES[kind]}, {what}")
        lines.append(f"    {help_text}" + (f" ({choices})" if choices and kind != "flag" else "") + ".")
    return ("\n" + indent).join([indent.join(("", lines[0]))] + lines[1:]).replace(f"\n{indent}\n", "\n\n") + "\n"
