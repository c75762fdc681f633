"""The examples and notebooks run as they are."""

import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT

SCRIPTS = sorted((ROOT / "examples" / "python").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples" / "python").glob("*.ipynb"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, script, tmp_path / "figure.pdf"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout and (tmp_path / "figure.pdf").stat().st_size > 1000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    content = nbformat.read(notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in content.cells), "commit notebooks without their outputs"
    done = nbclient.NotebookClient(content, timeout=300, kernel_name="python3",
                                   resources={"metadata": {"path": str(tmp_path)}}).execute()
    pictures = [output for cell in done.cells for output in cell.get("outputs", [])
                if "image/png" in output.get("data", {})]
    assert pictures


def test_there_are_three_scripts_and_two_notebooks():
    assert len(SCRIPTS) >= 3 and len(NOTEBOOKS) >= 2
