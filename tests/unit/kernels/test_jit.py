"""Kernels keep their compiled code wherever they are installed, and run without a compiler too."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidings import kernels
from tidings.kernels import jit

ROOT = Path(__file__).resolve().parents[3]


def without_jit():
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def test_a_package_that_can_be_written_keeps_its_own(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "is_writable", lambda _: True)
    assert jit.find_cache_folder() is None


def test_a_read_only_package_leaves_it_to_the_home(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "is_writable", lambda folder: folder.name != "__pycache__")
    assert jit.find_cache_folder() is None


def test_without_a_home_it_goes_to_a_temporary_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "is_writable", lambda _: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    assert jit.find_cache_folder() == str(tmp_path / "tidings-kernels-ada")
    assert (tmp_path / "tidings-kernels-ada").stat().st_mode & 0o777 == 0o700


def test_a_temporary_folder_that_others_can_write_is_not_used(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "is_writable", lambda _: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    planted = tmp_path / "tidings-kernels-ada"
    planted.mkdir()
    planted.chmod(0o777)
    assert jit.find_cache_folder() not in (None, str(planted))


@pytest.mark.parametrize("problem", [KeyError, OSError])
def test_a_user_without_a_name_has_a_number(monkeypatch, problem):
    def nameless():
        raise problem

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "is_writable", lambda _: False)
    monkeypatch.setattr("getpass.getuser", nameless)
    assert jit.find_cache_folder().endswith(f"tidings-kernels-{os.getuid()}")


def test_what_the_user_said_stays(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/mine")
    monkeypatch.setattr(jit, "is_writable", lambda _: False)
    assert jit.find_cache_folder() is None


def test_a_folder_that_is_not_there_is_as_writable_as_the_one_above(tmp_path):
    assert jit.is_writable(tmp_path / "not" / "there")
    assert not jit.is_writable(Path("/proc/1/not/there")) or os.access("/proc/1", os.W_OK)


# As root, file modes forbid nothing: the process itself says what it may not write.
IN_A_READ_ONLY_INSTALL = """
import os, sys
package, home = sys.argv[1:3]
real = os.access
def access(path, mode, **more):
    where = os.path.abspath(os.fspath(path))
    shut = mode & os.W_OK and (where.startswith(package) or where.startswith(home))
    return False if shut else real(path, mode, **more)
os.access = access
import numpy as np
from tidings.kernels.match import value_codes
assert value_codes.__file__.startswith(package), value_codes.__file__
out = np.zeros(2, np.uint32)
value_codes.rank_integers(np.array([1.0, 2.5]), 0.0, 9, out)
assert out.tolist() == [3, 6]
stats = value_codes.rank_integers.stats
print(os.environ["NUMBA_CACHE_DIR"], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.slow
@pytest.mark.skipif(without_jit(), reason="nothing is compiled")
def test_a_read_only_install_compiles_once(tmp_path):
    package, home, temporary = (tmp_path / name for name in ("site", "home", "tmp"))
    shutil.copytree(ROOT / "src" / "tidings", package / "tidings", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (home, temporary):
        folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    around = {
        **kept,
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    messages = []
    for _ in range(2):
        command = [sys.executable, "-c", IN_A_READ_ONLY_INSTALL, str(package), str(home)]
        done = subprocess.run(command, env=around, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        folder, hits, misses = done.stdout.split()
        assert Path(folder).parent == temporary
        messages.append((int(hits), int(misses)))
    assert messages == [(0, 1), (1, 0)]
    assert not list(package.rglob("*.nbi"))
    assert not list(home.rglob("*.nbi"))


@pytest.mark.slow
@pytest.mark.skipif(without_jit(), reason="this is what it runs")
def test_every_kernel_runs_as_plain_python():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        str(ROOT / "tests" / "unit" / "kernels"),
    ]
    around = {**os.environ, "NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "ci"}
    done = subprocess.run(command, env=around, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout


@pytest.mark.skipif(without_jit(), reason="no kernel is compiled")
def test_no_kernel_inherits_its_caller_s_inlining():
    for module in pkgutil.walk_packages(kernels.__path__, kernels.__name__ + "."):
        for name, kernel in vars(importlib.import_module(module.name)).items():
            options = getattr(kernel, "targetoptions", {"inline": "always"})
            assert options.get("inline") == "always" or "forceinline" in options, f"{module.name}.{name}"
