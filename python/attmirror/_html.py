"""How objects show themselves in notebooks: a caption and a small table."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def short(value: Any) -> str:
    """A number with the digits that mean something; anything else as text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def facts(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """A table of names and values."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(short(value))}</td></tr>"
        for name, value in rows
    )
    return f"<div><b>{html.escape(title)}</b><table>{cells}</table></div>"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a head."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(short(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<div><b>{html.escape(title)}</b><table><tr>{head}</tr>{body}</table></div>"
