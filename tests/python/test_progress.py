"""The progress bar: on a terminal, and nowhere else."""

import os
import pty
import subprocess
import sys

CALL = """
import attmirror as am
am.descend(am.generate(seed=1), am.MirrorDescent(p=1.75, normalized=True), steps=10**12, max_seconds=0.6, record="none",
           progress=True)
am.sweep({"data": {}, "train": {"steps": 5}, "grid": {"p": [2, 3]}}, progress=True)
"""


def test_on_a_terminal():
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", CALL], stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=60) == 0 and process.stdout.read() == b""
    process.stdout.close()
    text = shown.decode()
    assert "descend" in text and "loss" in text and "[" in text
    assert text.rstrip(" ").endswith("\r"), "the line is wiped at the end"


def test_not_in_a_pipe():
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "" and done.stdout == ""
