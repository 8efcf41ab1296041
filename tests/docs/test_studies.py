"""Every study of a paper: it can be listed, its claims can be read, a reader finds its page, and it runs.

The runs are tiny: that a study ends, draws lines and has the facts that its claims name, not what it measures.
"""

import importlib
import multiprocessing
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks.studies.paper_claims import read_claims
from benchmarks.studies.study import Scale, Study, StudyFolder, list_studies

ROOT = Path(__file__).parents[2]
PLACES = list_studies(ROOT)
FOLDERS = sorted(path for path in (ROOT / "benchmarks" / "papers").iterdir() if (path / "__init__.py").exists())


def test_every_package_is_a_study():
    assert [folder.name for folder in FOLDERS] == [place.key for place in PLACES]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
def test_its_claims_can_be_read(place):
    claims = read_claims(place.claims)  # which refuses keys that are there twice
    assert claims.claims


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
def test_it_has_a_title_and_a_page_that_says_how_to_run_it(place):
    assert place.title
    assert f"tidings bench run papers/{place.key}" in (place.folder / "README.md").read_text(encoding="utf-8")


# Tiny runs -------------------------------------------------------------------------------------

FAST = 3
"""So many seconds of the classifieds stream pass in one, for its phases last whole seconds."""


def shrink_poset(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.SIZES, Scale.QUICK, (20, 40, 60, 80))
    monkeypatch.setattr(run, "NESTINGS", (0.0, 0.95))
    monkeypatch.setattr(run, "INTERFACES", (2, 8))
    monkeypatch.setattr(run, "REPEAT", 1)


def shrink_classifieds(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = run.ClassifiedsSizes(
        subscriptions=600,
        warm_s=0.2,
        steady_s=1,
        changing_s=1,
        rising_s=3,
        growth=(200, 400),
        whole_tree=400,  # fewer than there are, so the whole tree is fed no stream
        polygons=(50, 100),
        names=(2, 4),
    )
    monkeypatch.setitem(run.SIZES, Scale.QUICK, tiny)
    monkeypatch.setattr(run, "DISTINCT", 100)
    hurried = SimpleNamespace(
        perf_counter=lambda: FAST * time.perf_counter(), sleep=lambda seconds: time.sleep(seconds / FAST)
    )
    monkeypatch.setattr(importlib.import_module("benchmarks.papers.classifieds.stream"), "time", hurried)
    threads = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=threading.Thread)  # six processes take long to start
    cluster = importlib.import_module("benchmarks.papers.classifieds.cluster")
    monkeypatch.setattr(cluster, "multiprocessing", SimpleNamespace(get_context=lambda _: threads))


def shrink_ctps(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.SIZES, Scale.QUICK, run.CtpsSizes((30, 60), 60, 30, 10, (0.05, 0.5), 1, 1))
    monkeypatch.setattr(run, "HEIGHTS", (1, 5))
    monkeypatch.setattr(
        run, "measure_matcher_memory", lambda *_, **__: None
    )  # the memory of a process of its own, slow to start


def shrink_hem(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.SIZES, Scale.QUICK, run.HemSizes((400, 800), 400, (3, 4), (0.2, 0.5), 4, 1))


def shrink_p_topss(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = run.PTopssSizes((10, 20), 10, 20, 40, (0, 2), (2, 4), (20, 40), 1, 500, 2_000, 100)
    monkeypatch.setitem(run.SIZES, Scale.QUICK, tiny)
    monkeypatch.setattr(run, "REPEAT", 1)
    monkeypatch.setattr(run, "PAPER_REPEAT", 1)
    monkeypatch.setattr(run, "data_folder", lambda: None)  # real data are not everywhere; they have tests of their own


SMALL = {
    "poset": shrink_poset,
    "classifieds": shrink_classifieds,
    "ctps": shrink_ctps,
    "hem": shrink_hem,
    "p_topss": shrink_p_topss,
}


def test_every_study_is_run_small():
    assert sorted(SMALL) == [place.key for place in PLACES]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.key)
def test_a_tiny_run_draws_lines_and_has_every_fact_that_its_claims_name(
    place: StudyFolder, monkeypatch: pytest.MonkeyPatch
):
    study = place.load()
    SMALL[place.key](importlib.import_module(study.__module__), monkeypatch)
    messages: list[str] = []
    outcome = study(Scale.QUICK, seed=1, say=messages.append)
    assert isinstance(outcome, Study)
    assert messages
    named = {claim.fact for claim in read_claims(place.claims).claims}  # a fact may be NaN: not measured so small
    assert not named - outcome.facts.keys()
    assert outcome.charts
    keys = [chart.key for chart in outcome.charts]
    assert len(set(keys)) == len(keys)  # each names a file
    for chart in outcome.charts:
        assert chart.lines, chart.key
        empty = [line.name for line in chart.lines if not line.points]
        assert not empty or place.key == "classifieds", chart.key  # by the clock, which may stand still
