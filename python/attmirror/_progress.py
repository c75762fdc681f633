"""A progress bar: one line on a terminal, one cell in a notebook."""

from __future__ import annotations

import sys
import time
from typing import Any


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return False
    shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


class Progress:
    """Shows a share of the work; nothing where stderr is neither a terminal nor a notebook's."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._begin = time.monotonic()
        self._shown = 0
        self._cell: Any = None
        self._mode = "notebook" if _in_notebook() else "terminal" if sys.stderr.isatty() else "none"

    def update(self, share: float, note: str = "") -> None:
        share = min(max(share, 0.0), 1.0)
        seconds = time.monotonic() - self._begin
        left = seconds / share - seconds if share > 0 else float("nan")
        text = f"{self._label} {100 * share:3.0f} %"
        text += f"  {left:.0f} s left" if share > 0.01 else ""
        text += f"  {note}" if note else ""
        if self._mode == "terminal":
            filled = int(24 * share)
            line = f"[{'#' * filled}{'.' * (24 - filled)}] {text}"
            sys.stderr.write("\r" + line.ljust(self._shown))
            sys.stderr.flush()
            self._shown = len(line)
        elif self._mode == "notebook":
            self._show_cell(share, text)

    def _show_cell(self, share: float, text: str) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        content = HTML(f"<progress value='{share}' max='1'></progress> {text}")  # type: ignore[no-untyped-call, unused-ignore]
        if self._cell is None:
            self._cell = display(content, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        else:
            self._cell.update(content)

    def close(self) -> None:
        if self._mode == "terminal" and self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
