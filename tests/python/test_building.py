"""What pip says where a library is missing: one sentence with Debian's packages."""

import shutil
import subprocess

import pytest

from conftest import ROOT


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_missing_libraries_are_named_at_once(tmp_path):
    done = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path / "build", "-DATTMIRROR_PYTHON=ON",
                           "-DCMAKE_DISABLE_FIND_PACKAGE_LibZip=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "attmirror is compiled against libraries that are not here: apt-get install libzip-dev libcli11-dev" in said
