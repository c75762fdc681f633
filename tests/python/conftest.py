"""The tests of the Python package. They run against what is installed, never against the source tree."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import attmirror as am

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SHARED = pathlib.Path(os.environ.get("ATTMIRROR_SHARED", ROOT.parent / "shared"))


def pytest_configure(config):
    source = ROOT / "python" / "attmirror"
    if pathlib.Path(am.__file__).resolve().parent == source:
        raise pytest.UsageError("attmirror is imported from the source tree: expected an installed wheel")


def bits(a, b):
    """The same shape, type and bits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def command(*words, **options):
    """The command that came with the package."""
    return subprocess.run([sys.executable, "-m", "attmirror", *map(str, words)], capture_output=True, text=True,
                          timeout=120, **options)


@pytest.fixture
def data():
    return am.generate(samples=6, tokens=8, dim=10, seed=1)


@pytest.fixture
def rule():
    return am.MirrorDescent(p=1.75, lr=0.1, normalized=True)
