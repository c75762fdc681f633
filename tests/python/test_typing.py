"""Types: mypy --strict on an example that uses every function, and the stubs hold the tables."""

import pathlib
import re
import subprocess
import sys

import pytest

import attmirror as am

EXAMPLE = pathlib.Path(__file__).with_name("typed_example.py")


def test_the_example_uses_every_name():
    used = set(re.findall(r"\bam\.(\w+)", EXAMPLE.read_text()))
    assert set(am.__all__) <= used, sorted(set(am.__all__) - used)


def test_the_example_runs():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", [[str(EXAMPLE)], ["-p", "attmirror"]], ids=["example", "package"])
def test_mypy_strict(what, tmp_path):
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", tmp_path, *what],
                          capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_have_every_optimizer():
    stub = (pathlib.Path(am.__file__).parent / "optimizers.pyi").read_text()
    for cls in am.optimizers.methods().values():
        assert f"class {cls.__name__}(Optimizer):" in stub
    assert "p: float | None = ..." in stub
    assert (pathlib.Path(am.__file__).parent / "py.typed").exists()
    assert "class Dataset" in (pathlib.Path(am.__file__).parent / "_core.pyi").read_text()


def test_nothing_leaks():
    """nanobind says at exit which of its objects are still alive."""
    done = subprocess.run([sys.executable, "-c", """
import attmirror as am, pickle, numpy as np
data = am.generate()
run = am.descend(data, am.MirrorDescent(p=3), steps=20, callback=lambda record: None)
svm = pickle.loads(pickle.dumps(am.max_margin(data, run, 3)))
many = am.max_margin_many([data] * 3)
views = [data.X, data.Z, run.W, svm.W, run.trace["W"]]
try:
    am.descend(data, am.MirrorDescent(p=3), steps=20, callback=lambda record: 1 / 0)
except ZeroDivisionError:
    pass
try:
    am.Dataset([[[1.0]]], [[1.0]], [3])
except ValueError:
    pass
am.Objective(lambda w: (0.0, w), {"w": 2}).descend(am.GradientDescent(), steps=3)
"""], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "leak" not in done.stderr.lower(), done.stderr
