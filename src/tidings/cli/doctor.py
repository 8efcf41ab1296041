"""`tidings doctor`: what this machine has of what Tidings needs, and how to mend what it has not.

Packages are held to the versions that the installed package asks for, and each of the core's does a tiny piece of
real work: a library that imports may still be broken. PySpark is looked up, not imported; only `tidings.spark` does
that. The core decides the exit code; what is missing for an extra is told and no more.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import asdict
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from tidings import __version__
from tidings.cli import machine_checks, render
from tidings.cli.machine_checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLDEST_PYTHON = (3, 11)

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

EXTRAS = ("spark", "rdf", "bench")
"""The extras users install."""


def run(*, as_json: bool) -> bool:
    """Print every check and return whether the core works."""
    checks = []
    for check in _checks():
        checks.append(check)
        if not as_json:
            _print(check)
    works = all(check.status is Status.OK for check in checks if check.part == "core")
    if as_json:
        render.out_json({"ok": works, "checks": [asdict(check) for check in checks]})
    else:
        render.out("the core works" if works else "the core does not work; mend what stands above")
    return works


def _print(check: Check) -> None:
    render.labelled(f"{check.status:<8}", f"{check.name:<14} {check.found}", between="")
    if check.fix:
        render.out(f"{'':<8}{'':<14} -> {check.fix}")


def _checks() -> Iterator[Check]:
    needs = _needs()
    yield _python()
    for name in PROBES:
        yield _package(name, needs.get("core", {}).get(name, ""))
    yield _whole()
    for extra in EXTRAS:
        if extra in needs:
            yield _extra(extra, needs[extra])
    yield machine_checks.worker_python()
    yield machine_checks.java()
    yield machine_checks.kafka()


def _python() -> Check:
    found = f"{platform.python_version()} in {sys.executable}"
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("core", "python", Status.OK, found)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Check("core", "python", Status.WRONG, found, f"install Python {oldest} or later")


def _package(name: str, wanted: str) -> Check:
    version, fix = _version(name), f"pip install '{name}{wanted}'"
    if version is None:
        return Check("core", name, Status.MISSING, "not installed", fix)
    if not fits(version, wanted):
        return Check("core", name, Status.WRONG, f"{version}, and {wanted} is needed", fix)
    module, works = PROBES[name]
    try:
        right = works(import_module(module))
    except Exception as problem:  # whatever a broken library does is what we want to tell
        found = f"{version} does not work: {type(problem).__name__}: {problem}"
        return Check("core", name, Status.WRONG, found, f"pip install --force-reinstall '{name}{wanted}'")
    if not right:
        return Check(
            "core", name, Status.WRONG, f"{version} gives a wrong answer", f"pip install --force-reinstall '{name}'"
        )
    return Check("core", name, Status.OK, version)


def _whole() -> Check:
    """Let the parts work together: a filter and an event."""
    try:
        from tidings.matcher import Matcher

        searches = Matcher()
        searches.add("s1", "make = 'ford' and price < 9000 and name matches /^f/")
        right = searches.match({"make": "ford", "price": 8500, "name": "focus"}) == ["s1"]
    except Exception as problem:  # the same
        return Check(
            "core",
            "tidings",
            Status.WRONG,
            f"{type(problem).__name__}: {problem}",
            "pip install --force-reinstall tidings",
        )
    status = Status.OK if right else Status.WRONG
    return Check("core", "tidings", status, f"{__version__} matches a filter and an event")


def _extra(extra: str, needs: dict[str, str]) -> Check:
    found = {name: _version(name) for name in needs}
    missing = [name for name, version in found.items() if version is None]
    wrong = [
        f"{name} {version}, and {needs[name]} is needed"
        for name, version in found.items()
        if not fits(version, needs[name])
    ]
    fix = f"pip install 'tidings[{extra}]'"
    if missing:
        return Check(extra, f"[{extra}]", Status.MISSING, f"not installed (optional): {', '.join(missing)}", fix)
    if wrong:
        return Check(extra, f"[{extra}]", Status.WRONG, "; ".join(wrong), fix)
    return Check(extra, f"[{extra}]", Status.OK, ", ".join(f"{name} {version}" for name, version in found.items()))


# Versions --------------------------------------------------------------------------------------


def _needs() -> dict[str, dict[str, str]]:
    """Return the versions wanted of each package, for the core and for each extra, as the installed package says."""
    try:
        lines = metadata.requires("tidings") or []
    except metadata.PackageNotFoundError:  # run from its sources
        return {}
    needs: dict[str, dict[str, str]] = {}
    for line in lines:
        wanted, _, marker = line.partition(";")
        name, versions = re.match(r"([\w.-]+)\s*(.*)", wanted).groups()  # type: ignore[union-attr]
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", marker)
        needs.setdefault(extra[1] if extra else "core", {})[name] = versions.strip(" ()")
    return needs


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def fits(version: str | None, wanted: str) -> bool:
    """Tell whether a version is what was asked for: `>=2.2,<3` or `==4.3.*`; what is absent fits nothing wrong.

    >>> fits("2.10.1", ">=2.2,<3"), fits("4.2.0", "==4.3.*")
    (True, False)
    """
    return version is None or all(_meets(version, part.strip()) for part in wanted.split(",") if part.strip())


def _meets(version: str, part: str) -> bool:
    op, bound = re.match(r"([<>=!~]+)\s*(.*)", part).groups()  # type: ignore[union-attr]
    have, want = _numbers(version), _numbers(bound.removesuffix(".*"))
    if op == "==":
        return have[: len(want)] == want if bound.endswith(".*") else have == want
    answers = {">=": have >= want, "<": have < want, "<=": have <= want, ">": have > want, "!=": have != want}
    return answers.get(op, True)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers: enough for bounds such as ours, which have no pre-releases."""
    return tuple(int(part) for part in re.match(r"\d+(?:\.\d+)*", version + "")[0].split("."))  # type: ignore[index]
