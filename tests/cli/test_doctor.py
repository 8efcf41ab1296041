"""`tidings doctor`."""

import subprocess
import sys
from importlib import metadata
from textwrap import dedent

import pytest

from tidings import installation
from tidings.cli import doctor
from tidings.cli.doctor import Status


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Numba compiles for a second or more; one test below lets it."""
    monkeypatch.setitem(doctor.PROBES, "numba", ("json", lambda module: hasattr(module, "loads")))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


def java(folder, version):
    """A program that answers as a Java of this version does."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '    java.home = {folder}'\necho '    java.specification.version = {version}'\n")
    path.chmod(0o755)


def test_a_machine_that_has_everything_is_well(tidings):
    done = tidings("doctor")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "the core works"
    for name in ("python", *doctor.PROBES, "tidings", "[spark]", "java", "worker python", "kafka"):
        assert f" {name} " in done.out


def test_json_has_every_check(tidings):
    (line,) = tidings("doctor", "--json").lines
    assert line["ok"] is True
    assert {"part", "name", "status", "found", "fix"} == set(line["checks"][0])
    assert {check["part"] for check in line["checks"]} >= {"core", "spark"}


@pytest.mark.slow
def test_every_core_package_does_a_piece_of_real_work(monkeypatch):
    monkeypatch.undo()
    for name in doctor.PROBES:
        assert doctor.check_package(name, "").status is Status.OK, name


def test_it_does_not_import_pyspark():
    program = """
        import sys
        from tidings.cli import doctor
        from tidings.cli.app import app
        del doctor.PROBES["numba"]
        app(["doctor", "--json"], standalone_mode=False)
        print("pyspark" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_missing_core_package_is_exit_1_and_says_how_to_get_it(tidings, monkeypatch):
    version = metadata.version

    def without_lark(name):
        if name == "lark":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_lark)
    done = tidings("doctor")
    assert done.code == 1
    assert "missing lark           not installed\n" in done.out
    assert "-> pip install 'lark>=1.2'" in done.out


def test_a_broken_core_package_is_told_in_its_own_words(tidings, monkeypatch):
    monkeypatch.setitem(doctor.PROBES, "pint", ("json", lambda module: module.nothing))
    done = tidings("doctor")
    assert done.code == 1
    assert "does not work: AttributeError" in done.out
    monkeypatch.setitem(doctor.PROBES, "pint", ("json", lambda _: False))
    assert "gives a wrong answer" in tidings("doctor").out


def test_a_missing_extra_leaves_the_core_well(tidings, monkeypatch):
    version = metadata.version

    def without_spark(name):
        if name in ("pyspark", "pandas"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_spark)
    done = tidings("doctor")
    assert done.code == 0
    assert "not installed (optional): pandas, pyspark" in done.out
    assert "-> pip install 'tidings[spark]'" in done.out


def test_a_wrong_version_of_an_extra_is_told(tidings, monkeypatch):
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "3.0.1" if name == "pandas" else version(name))
    done = tidings("doctor")
    assert done.code == 0
    assert "pandas 3.0.1, and <3,>=2.2 is needed" in done.out


def test_from_its_sources_it_still_looks(monkeypatch):
    def nothing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", nothing)
    assert doctor.read_requirements() == {}


@pytest.mark.parametrize(
    ("version", "wanted", "fit"),
    [
        ("2.0.0", ">=2.0", True),
        ("2.0", ">=2.0.1", False),
        ("10.0", ">=9", True),
        ("2.9.1", ">=2.2,<3", True),
        ("3.0", ">=2.2,<3", False),
        ("4.3.0", "==4.3.*", True),
        ("4.30.0", "==4.3.*", False),
        ("1.1.20251105", ">=1.1", True),
        ("6.0rc1", ">=6", True),
        ("1.0", "", True),
        ("1.0", "!=1.0", False),
    ],
)
def test_versions_are_held_to_what_is_asked(version, wanted, fit):
    assert doctor.satisfies(version, wanted) is fit


# Java and the workers' Python ------------------------------------------------------------------


def test_java_home_comes_first(monkeypatch, tmp_path):
    java(tmp_path, 21)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (doctor.check_java().status, doctor.check_java().finding) == (Status.OK, f"21 in {tmp_path}")


def test_an_old_java_is_wrong_and_a_newer_one_on_the_system_is_named(monkeypatch, tmp_path):
    java(tmp_path / "old", "1.8")
    java(tmp_path / "system" / "java-17", 17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    check = doctor.check_java(tmp_path / "system")
    assert check.status is Status.WRONG
    assert check.finding.startswith("8 in")
    assert check.fix == f"export JAVA_HOME={tmp_path / 'system' / 'java-17'}"


def test_no_java_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    check = doctor.check_java(tmp_path)
    assert check.status is Status.MISSING
    assert "apt-get install" in check.fix


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(tmp_path) in doctor.check_java().finding


def test_the_workers_take_our_python_unless_told_otherwise(monkeypatch):
    assert sys.executable in doctor.check_worker_python().finding
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert doctor.check_worker_python().status is Status.OK


def test_another_python_for_the_workers_is_wrong(monkeypatch, tmp_path):
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 3.8\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    check = doctor.check_worker_python()
    assert (check.status, check.fix) == (Status.WRONG, f"export PYSPARK_PYTHON={sys.executable}")
    assert "is Python 3.8" in check.finding
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "nowhere"))
    assert "which is not there" in doctor.check_worker_python().finding


# Kafka's jars -----------------------------------------------------------------------------------


@pytest.fixture
def jars(monkeypatch, tmp_path):
    """A folder with the connector's four jars, by their names; Spark itself has none."""
    for coordinates in installation.CONNECTOR:
        _, name, version = coordinates.split(":")
        (tmp_path / f"{name}-{version}.jar").touch()
    monkeypatch.delenv("TIDINGS_JARS", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    return tmp_path


def test_the_folder_of_the_connectors_jars_is_named(jars, monkeypatch):
    monkeypatch.setenv("TIDINGS_JARS", str(jars))
    check = doctor.check_kafka()
    assert (check.status, check.fix) == (Status.OK, None)
    assert check.finding == f"the connector's jars are in {jars} (TIDINGS_JARS)"


def test_jars_that_are_missing_from_the_folder_are_named(jars, monkeypatch):
    monkeypatch.setenv("TIDINGS_JARS", str(jars))
    for jar in [*jars.glob("commons-pool2*"), *jars.glob("kafka-clients*")]:
        jar.unlink()
    check = doctor.check_kafka()
    assert check.status is Status.WRONG
    assert check.finding == f"TIDINGS_JARS is `{jars}`, which lacks kafka-clients, commons-pool2"
    assert "org.apache.commons:commons-pool2:2.12.1" in check.fix


def test_a_folder_of_jars_that_is_not_there_is_named(jars, monkeypatch):
    monkeypatch.setenv("TIDINGS_JARS", str(jars / "nowhere"))
    assert doctor.check_kafka().finding == f"TIDINGS_JARS is `{jars / 'nowhere'}`, which is not there"


def test_no_connector_is_optional_and_says_how_to_get_it(jars, tidings):
    done = tidings("doctor")
    assert done.code == 0
    assert "missing kafka          no connector's jars (optional)" in done.out
    assert all(coordinates in done.out for coordinates in installation.CONNECTOR)
    assert "export TIDINGS_JARS=" in done.out


def test_a_connector_among_sparks_own_jars_is_found(jars, monkeypatch):
    (jars / "spark").mkdir()
    (jars / "spark" / "jars").symlink_to(jars)
    assert doctor.check_kafka().finding == f"the connector's jars are in {jars / 'spark' / 'jars'}"


def test_without_pyspark_it_still_looks_for_the_connector(monkeypatch):
    monkeypatch.delenv("TIDINGS_JARS", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(installation, "find_spec", lambda _: None)
    assert doctor.check_kafka().status is Status.MISSING
