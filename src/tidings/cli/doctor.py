"""`tidings doctor`: checks that this machine has what Tidings needs, and how to correct what it has not.

Packages must have the versions that the installed `tidings` requires, and each package of the core does a tiny piece of
real work: a library that imports may still be broken. PySpark is looked up, not imported; only `tidings.spark` does
that. The core decides the exit code; what an extra lacks is only reported.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings import __version__, installation
from tidings.cli import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROBES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "numpy": ("numpy", lambda m: m.arange(3).sum() == 3),
    "numba": ("numba", lambda m: m.njit(lambda x: x + 1)(1) == 2),
    "pyarrow": ("pyarrow", lambda m: m.array([1, None]).to_pylist() == [1, None]),
    "lark": ("lark", lambda m: m.Lark('start: "a"').parse("a").data == "start"),
    "shapely": ("shapely", lambda m: bool(m.Point(0, 0).within(m.box(-1, -1, 1, 1)))),
    "pint": ("pint", lambda m: m.UnitRegistry()("1 km").to("m").magnitude == 1000),
    "google-re2": ("re2", lambda m: m.search("a+", "caat") is not None),
    "typer": ("typer", lambda m: hasattr(m, "Typer")),
    "rich": ("rich", lambda m: hasattr(m, "print")),
}
"""For each package of the core: the module it is imported as, and a call that only a working one answers rightly."""

EXTRAS = ("spark", "service", "kafka", "rdf", "bench")
"""The extras users install."""

SYSTEM_JAVAS = Path("/usr/lib/jvm")
"""Where Linux systems install Java."""


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """A check of one requirement: its result, what the machine has, and how to correct it."""

    part: str
    name: str
    status: Status
    finding: str
    fix: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        """Return the check for JSON."""
        result = {"part": self.part, "name": self.name, "status": self.status}
        return {**result, "found": self.finding, "fix": self.fix}


def run(*, as_json: bool) -> bool:
    """Print every check and return whether the core works."""
    checks = []
    for check in _run_checks():
        checks.append(check)
        if not as_json:
            render.print_labelled(f"{check.status:<8}", f"{check.name:<14} {check.finding}", between="")
        if check.fix and not as_json:
            render.write(f"{'':<8}{'':<14} -> {check.fix}")
    works = all(check.status is Status.OK for check in checks if check.part == "core")
    if as_json:
        render.write_json({"ok": works, "checks": [check.to_dict() for check in checks]})
    else:
        render.write("the core works" if works else "the core does not work; fix the problems listed above")
    return works


def _run_checks() -> Iterator[MachineCheck]:
    needs = read_requirements()
    # Never too old a version: in such a Python this module does not load.
    yield MachineCheck("core", "python", Status.OK, f"{platform.python_version()} in {sys.executable}")
    for name in PROBES:
        yield check_package(name, needs.get("core", {}).get(name, ""))
    yield _check_matching()
    for extra in EXTRAS:
        if extra in needs:
            yield _check_extra(extra, needs[extra])
    yield check_worker_python()
    yield check_java()
    yield check_kafka()


def check_package(name: str, wanted: str) -> MachineCheck:
    """Check a package of the core: its version against `wanted`, and that it does a piece of work."""
    report = partial(MachineCheck, "core", name)
    version, fix = installation.find_version(name), f"pip install '{name}{wanted}'"
    if version is None:
        return report(Status.MISSING, "not installed", fix)
    if not satisfies(version, wanted):
        return report(Status.WRONG, f"{version}, and {wanted} is needed", fix)
    module, works = PROBES[name]
    try:
        right = works(import_module(module))
    except Exception as problem:  # noqa: BLE001 - whatever a broken library raises is the finding
        finding = f"{version} does not work: {type(problem).__name__}: {problem}"
        return report(Status.WRONG, finding, f"pip install --force-reinstall '{name}{wanted}'")
    if not right:
        return report(Status.WRONG, f"{version} gives a wrong answer", f"pip install --force-reinstall '{name}'")
    return report(Status.OK, version)


def _check_matching() -> MachineCheck:
    """Check that the parts work together: match an event against a filter."""
    report = partial(MachineCheck, "core", "tidings")
    try:
        from tidings.matcher import Matcher

        searches = Matcher()
        searches.add("s1", "make = 'ford' and price < 9000 and name matches /^f/")
        right = searches.match({"make": "ford", "price": 8500, "name": "focus"}) == ["s1"]
    except Exception as problem:  # noqa: BLE001 - likewise
        finding = f"{type(problem).__name__}: {problem}"
        return report(Status.WRONG, finding, "pip install --force-reinstall tidings")
    return report(Status.OK if right else Status.WRONG, f"{__version__} matches a filter and an event")


def _check_extra(extra: str, needs: dict[str, str]) -> MachineCheck:
    report = partial(MachineCheck, extra, f"[{extra}]")
    versions = {name: installation.find_version(name) for name in needs}
    fix = f"pip install 'tidings[{extra}]'"
    if missing := [name for name, version in versions.items() if version is None]:
        return report(Status.MISSING, f"not installed (optional): {', '.join(missing)}", fix)
    if wrong := [
        f"{name} {version}, and {needs[name]} is needed"
        for name, version in versions.items()
        if not satisfies(version, needs[name])
    ]:
        return report(Status.WRONG, "; ".join(wrong), fix)
    return report(Status.OK, ", ".join(f"{name} {version}" for name, version in versions.items()))


# Java, the Python of workers, and jars ---------------------------------------------------------


def check_java(system_javas: Path = SYSTEM_JAVAS) -> MachineCheck:
    """Look for the Java that Spark would take: JAVA_HOME's, else the one on the PATH."""
    report = partial(MachineCheck, "spark", "java")
    path, problem = installation.find_java()
    if path is None:
        return report(Status.MISSING, problem.removeprefix("there is "), _suggest_java(system_javas))
    version, where = installation.read_java_version(path)
    if version is None:
        return report(Status.WRONG, f"`{path}` does not say its version", _suggest_java(system_javas))
    if version < installation.OLDEST_JAVA:
        finding = f"{version} in {where}; Spark needs {installation.OLDEST_JAVA} or later"
        return report(Status.WRONG, finding, _suggest_java(system_javas))
    return report(Status.OK, f"{version} in {where}")


def _suggest_java(system_javas: Path) -> str:
    for path in sorted(system_javas.glob("*/bin/java")):
        version, home = installation.read_java_version(str(path))
        if version is not None and version >= installation.OLDEST_JAVA:
            return f"export JAVA_HOME={home}"
    return f"sudo apt-get install openjdk-{installation.OLDEST_JAVA}-jre-headless, or set JAVA_HOME"


def check_worker_python() -> MachineCheck:
    """Check the Python that Spark's workers would run: it must have our version."""
    report = partial(MachineCheck, "spark", "worker python")
    named = os.environ.get("PYSPARK_PYTHON")
    if not named:
        return report(Status.OK, f"{sys.executable} (tidings.spark.session sets it)")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    path = shutil.which(named)
    if path is None:
        return report(Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which is not there", fix)
    # The version is printed first: in a Python of another version, the import is expected to fail.
    program = "import sys; print('%d.%d' % sys.version_info[:2]); import tidings"
    output = installation.run_program([path, "-c", program]).strip()
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if output != ours:
        reason = f"is Python {output[:4]}, not {ours}" if not output.startswith(ours) else "cannot import tidings"
        return report(Status.WRONG, f"PYSPARK_PYTHON is `{named}`, which {reason}", fix)
    return report(Status.OK, f"{path} (PYSPARK_PYTHON)")


def check_kafka() -> MachineCheck:
    """Check where Spark would take its Kafka connector from: TIDINGS_JARS, its own jars, or the network."""
    report = partial(MachineCheck, "spark", "kafka")
    jars = ", ".join(installation.CONNECTOR)
    advice = f"put these jars into a folder, each without its own dependencies: {jars}"
    if folder := os.environ.get("TIDINGS_JARS"):
        lacking = installation.find_missing_jars(Path(folder))
        if not lacking:
            return report(Status.OK, f"the connector's jars are in {folder} (TIDINGS_JARS)")
        state = f"lacks {', '.join(lacking)}" if Path(folder).is_dir() else "is not there"
        return report(Status.WRONG, f"TIDINGS_JARS is `{folder}`, which {state}", advice)
    own_jars = installation.find_spark_jars()
    if not installation.find_missing_jars(own_jars):
        return report(Status.OK, f"the connector's jars are in {own_jars}")
    finding = "no connector's jars (optional); Spark tries to fetch them when a session asks for Kafka"
    return report(Status.MISSING, finding, f"{advice}, and export TIDINGS_JARS=that folder")


# Versions --------------------------------------------------------------------------------------


def read_requirements() -> dict[str, dict[str, str]]:
    """Return the required version of each package, for the core and for each extra, from the installed `tidings`."""
    try:
        lines = metadata.requires("tidings") or []
    except metadata.PackageNotFoundError:  # run from its sources
        return {}
    needs: dict[str, dict[str, str]] = {}
    for line in lines:
        wanted, _, marker = line.partition(";")
        [(name, versions)] = re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?\s*(.*)", wanted)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", marker)
        needs.setdefault(extra[1] if extra else "core", {})[name] = versions.strip(" ()")
    return needs


def satisfies(version: str | None, wanted: str) -> bool:
    """Tell whether a version satisfies a requirement such as `>=2.2,<3` or `==4.3.*`; an absent one is not wrong.

    >>> satisfies("2.10.1", ">=2.2,<3"), satisfies("4.2.0", "==4.3.*")
    (True, False)
    """
    return version is None or all(_satisfies_bound(version, part.strip()) for part in wanted.split(",") if part.strip())


def _satisfies_bound(version: str, part: str) -> bool:
    [(op, bound)] = re.findall(r"^([<>=!~]+)\s*(.*)", part)
    own, other = _parse_version(version), _parse_version(bound.removesuffix(".*"))
    if op == "==":
        return own[: len(other)] == other if bound.endswith(".*") else own == other
    answers = {">=": own >= other, "<": own < other, "<=": own <= other, ">": own > other, "!=": own != other}
    return answers.get(op, True)


def _parse_version(version: str) -> tuple[int, ...]:
    """Return the leading numbers: enough for our requirements, which name no pre-releases."""
    [numbers] = re.findall(r"^\d+(?:\.\d+)*", version)
    return tuple(map(int, numbers.split(".")))
