"""`tidings bench run papers/KEY`: a checkout's study of a paper, its figures and claims printed, written and drawn.

Measuring is the study's (`benchmarks/papers/KEY/run.py`), judging is `tidings.bench.harness.claims`'.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.bench import harness
from tidings.bench.harness.charts import chart_dict, chart_rows, draw
from tidings.bench.harness.claims import Outcome, claim_rows, judged, read_claims, reasons, tally
from tidings.bench.harness.studies import Scale
from tidings.bench.harness.study_files import PREFIX, study_place
from tidings.cli import render
from tidings.cli.bench.bench import make_folder, show, telling
from tidings.errors import FileError, MissingExtra

if TYPE_CHECKING:
    from tidings.bench.harness.claims import Judged
    from tidings.bench.harness.studies import Study


def run(key: str, scale: Scale, *, seed: int, out: Path | None, as_json: bool) -> None:
    """Measure, print tables and claims, write `study.json` and a picture for each chart."""
    place = study_place(key, Path.cwd())
    claims = read_claims(place.claims)  # a mistake there is told before an hour of measuring
    measure = place.study()
    folder = place.root / "out" / "papers" / place.key if out is None else out
    make_folder(folder)
    with telling() as say:
        study = measure(scale, seed=seed, say=say)
    found = judged(claims, study.facts)
    command = shlex.join(["tidings", *sys.argv[1:]])
    whole = {
        "study": f"{PREFIX}{place.key}",
        "paper": claims.paper,
        "title": study.title,
        "scale": str(scale),
        "charts": [chart_dict(chart) for chart in study.charts],
        "facts": {name: value if math.isfinite(value) else None for name, value in study.facts.items()},
        "claims": [one.to_dict() for one in found],
        "notes": list(study.notes),
        "run": harness.circumstances(command, seed=seed, scale=str(scale)),
    }
    if as_json:
        render.out_json(whole)
    else:
        _print(study, found, scale=scale, paper=claims.paper, run=whole["run"])  # type: ignore[arg-type]
    _remark(found, scale)
    _write(study, whole, folder)


def _print(study: Study, found: list[Judged], *, scale: Scale, paper: str, run: dict[str, Any]) -> None:
    render.out(f"{study.title} ({scale})\n{paper}")
    for chart in study.charts:
        render.out(f"\n{chart.key}: {chart.title}; {chart.y}")
        show(chart_rows(chart))
        if chart.note:
            render.out(f"  {chart.note}")
    if study.notes:
        render.out("\n" + "\n".join(f"  {note}" for note in study.notes))
    if found:
        render.out("")
        show(claim_rows(found))
        render.out("\n".join([*(f"  {line}" for line in reasons(found)), tally(found)]))
    packages = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    render.out(f"{run['machine']}; Python {run['python']}, {packages}; {run['date']}")


def _remark(found: list[Judged], scale: Scale) -> None:
    """Say of the full study what it should have measured: a fact that it never has is a mistyped one."""
    unmeasured = [one.claim for one in found if one.outcome is Outcome.UNMEASURED]
    if scale is Scale.FULL and unmeasured:
        listed = ", ".join(f"`{claim.fact}` (claim `{claim.key}`)" for claim in unmeasured)
        render.warning(f"even the full study has no fact {listed}")


def _write(study: Study, whole: dict[str, Any], folder: Path) -> None:
    path = folder / "study.json"
    try:
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as problem:
        msg = f"cannot write the results to `{path}`: {problem.strerror}"
        raise FileError(msg) from problem
    made = [path]
    try:
        made += draw(study.charts, folder)
    except MissingExtra as problem:
        render.warning(str(problem))
    render.note(f"wrote {', '.join(f'`{_near(one)}`' for one in made)}")


def _near(path: Path) -> Path:
    """Return a path as the user would type it, where it lies below the folder they are in."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
