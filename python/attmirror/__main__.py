"""The command attmirror: python -m attmirror train data.npz ... is `attmirror train data.npz ...`."""

from __future__ import annotations

import os
import sys


def program() -> str:
    """The command that came with the package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "attmirror")


def main() -> int:
    path = program()
    if not os.path.exists(path):
        print(f"attmirror: this package was built without the command, which would be {path}", file=sys.stderr)
        return 2
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
