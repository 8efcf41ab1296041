"""`tidings bench run papers/KEY`: a checkout's study of a paper, its figures and claims printed, written and drawn.

The study itself (`benchmarks/papers/KEY/run.py`) measures; `benchmarks.studies.paper_claims` judges the claims.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.studies.charts import build_chart_rows, draw_charts, dump_chart
from benchmarks.studies.paper_claims import (
    ClaimOutcome,
    build_claim_rows,
    format_tally,
    judge_claims,
    list_reasons,
    read_claims,
)
from benchmarks.studies.study import Scale, find_study
from tidings.bench.harness import describe_run
from tidings.cli import render
from tidings.cli.bench.bench import make_folder, print_circumstances, print_rows, show_activity
from tidings.cli.bench.studies import STUDY_PREFIX
from tidings.errors import MissingExtra
from tidings.matcher.loading.row_readers import refuse_failure

if TYPE_CHECKING:
    from benchmarks.studies.paper_claims import JudgedClaim
    from benchmarks.studies.study import Study


def run(root: Path, key: str, scale: Scale, *, seed: int, out: Path | None, as_json: bool) -> None:
    """Run a study of the checkout `root`: print tables and claims, write `study.json` and a picture for each chart."""
    location = find_study(root, key)
    claims = read_claims(location.claims)  # a mistake there is reported before an hour of measuring
    measure = location.load()
    folder = root / "out" / "papers" / location.key if out is None else out
    make_folder(folder)
    with show_activity() as say:
        study = measure(scale, seed=seed, say=say)
    verdicts = judge_claims(claims, study.facts)
    command = shlex.join(["tidings", *sys.argv[1:]])
    results: dict[str, Any] = {
        "study": f"{STUDY_PREFIX}{location.key}",
        "paper": claims.paper,
        "title": study.title,
        "scale": str(scale),
        "charts": [dump_chart(chart) for chart in study.charts],
        "facts": {name: value if math.isfinite(value) else None for name, value in study.facts.items()},
        "claims": [verdict.to_dict() for verdict in verdicts],
        "notes": list(study.notes),
        "run": describe_run(command, seed=seed, scale=str(scale)),
    }
    if as_json:
        render.write_json(results)
    else:
        _print_study(study, verdicts, scale=scale, paper=claims.paper, run=results["run"])
    unmeasured = [verdict.claim for verdict in verdicts if verdict.outcome is ClaimOutcome.UNMEASURED]
    if scale is Scale.FULL and unmeasured:  # the name of the fact is mistyped
        facts = ", ".join(f"`{claim.fact}` (claim `{claim.key}`)" for claim in unmeasured)
        render.warn(f"even the full study has no fact {facts}")
    _write_study(study, results, folder)


def _print_study(study: Study, verdicts: list[JudgedClaim], *, scale: Scale, paper: str, run: dict[str, Any]) -> None:
    render.write(f"{study.title} ({scale})\n{paper}")
    for chart in study.charts:
        render.write(f"\n{chart.key}: {chart.title}; {chart.y}")
        print_rows(build_chart_rows(chart))
        if chart.note:
            render.write(f"  {chart.note}")
    if study.notes:
        render.write("\n" + "\n".join(f"  {note}" for note in study.notes))
    if verdicts:
        render.write("")
        print_rows(build_claim_rows(verdicts))
        render.write("\n".join([*(f"  {line}" for line in list_reasons(verdicts)), format_tally(verdicts)]))
    print_circumstances(run)


def _write_study(study: Study, results: dict[str, Any], folder: Path) -> None:
    path = folder / "study.json"
    with refuse_failure(f"write the results to `{path}`", ValueError):
        path.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    paths = [path]
    try:
        paths += draw_charts(study.charts, folder)
    except MissingExtra as problem:
        render.warn(str(problem))
    current = Path.cwd()
    names = [f"`{path.relative_to(current) if path.is_relative_to(current) else path}`" for path in paths]
    render.note(f"wrote {', '.join(names)}")
