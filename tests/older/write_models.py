"""Write models: of patterns with an automaton and of those that are only tracked, with keys and without.

Written by version 0.1.0 at commit f057d71; kept so that what was written can be rebuilt; not run by tests.
In that commit's checkout: PYTHONPATH=src python -m tests.older.write_models
"""

import random
import re
import shutil

from tests.older.forms import HERE, HORIZONS, forecast_now, list_forecasts, watch_patterns, write

import tidings as td

FOLDER = HERE / "models"

ESTIMATORS = ("both", "chain", "direct", "printed")

SETTINGS = {
    "usual": {},
    "fading": {"half_life": 60, "context": 2, "smoothing": 0.1, "horizons": ["9 s"]},
    "fading-in-time": {"half_life": "40 s", "context": 1, "horizons": ["9 s", "1 min"], "estimator": "direct"},
    "plain-chain": {"estimator": "chain", "context": 0, "smoothing": 0},
}


def render_filters(expression, key=""):
    """Return an expression over filters that are called by the kinds they ask for, below those filters."""
    used = sorted(set(re.findall(r"\b[abcd]\b", expression)))
    return "".join(f"{kind} = kind = '{kind}'{key}\n" for kind in used) + expression


OF_KEY = " and k = $x"

PATTERNS = [
    {"name": "next to", "mode": "restart", "pattern": render_filters("a , b ; c")},
    {"name": "both", "mode": "overlap", "pattern": render_filters("(a and b) ; c")},
    {"name": "either", "mode": "any", "pattern": render_filters("(a ; b) or (c , d)")},
    {"name": "between", "mode": "restart", "pattern": render_filters("a ; not d ; b", OF_KEY)},
    {"name": "many", "mode": "overlap", "pattern": render_filters("(f:a{2,} ; c) or (d , b)", OF_KEY)},
    {"name": "soon", "mode": "restart", "pattern": render_filters("a ; b within 5 s")},
    {"name": "thrice", "mode": "overlap", "pattern": render_filters("a{3,} within 20 s", OF_KEY)},
    {"name": "late", "mode": "any", "pattern": render_filters("a ; b @ t(b) - t(a) > 2 s ; c", OF_KEY)},
    {"name": "never", "mode": "restart", "pattern": render_filters("a ; not b for 6 s", OF_KEY)},
    {"name": "quiet", "mode": "next", "pattern": render_filters("c ; not d for 4 s")},
    {"name": "each", "mode": "next", "pattern": render_filters("a ; b", OF_KEY)},
    {
        "name": "joined",
        "mode": "restart",
        "pattern": "a = kind = 'a' and k = $x and o = $o\nb = kind = 'b' and k = $x\n"
        "c = kind = 'c' and k = $x and o = $o\na ; b ; c",
    },
    {
        "name": "passed on",
        "mode": "restart",
        "pattern": "a = kind = 'a' and k = $x\nb = kind = 'b' and to = $x\na ; b",
    },
]
"""The first five have an automaton, the others are tracked."""

UNKNOWN = {"name": "new", "mode": "restart", "pattern": render_filters("b ; d", OF_KEY)}
"""A pattern that no model has counted."""


def draw_events(count, seed, *, start=0):
    """Return events of four kinds and five keys; what comes next hangs on what came before."""
    rng, rows, at, kind = random.Random(seed), [], start, "a"
    likely = {"a": "abbc", "b": "bccd", "c": "cdaa", "d": "adab"}
    for number in range(count):
        at += rng.choice((0, 1, 1, 1, 2, 3))
        kind = rng.choice(likely[kind] + "abcd")
        key = rng.choice((1, 1, 1, 2, 2, "three", 4.5, 5))
        rows.append({"id": number, "time": at, "kind": kind, "k": key, "o": rng.randrange(3), "to": rng.randrange(5)})
    return rows


def main():
    """Write the models, and what each foretells."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    history, stream = draw_events(400, 1), draw_events(70, 2)
    expected = {"patterns": [*PATTERNS, UNKNOWN], "history": history, "events": stream, "settings": SETTINGS}
    counted = td.Detector()
    for pattern in PATTERNS:
        counted.add(pattern["name"], pattern["pattern"], mode=pattern["mode"])
    for name, settings in SETTINGS.items():
        model = td.train(counted, history, **settings)
        model.save(FOLDER / f"{name}.model")
        watch = watch_patterns(model, expected["patterns"])
        before = forecast_now(watch, HORIZONS[:2])
        reported = list_forecasts(watch.detect_many(stream).forecasts)
        expected[name] = {"show": model.show(), "before": before, "told": reported, "after": forecast_now(watch)}
        expected[name] |= {"twice": forecast_now(watch_patterns(model + model, PATTERNS[:7]), HORIZONS[2:])}
        for estimator in ESTIMATORS:
            watch = watch_patterns(model.using(estimator=estimator), PATTERNS)
            watch.detect_many(stream[:33])
            expected[name][estimator] = forecast_now(watch, HORIZONS[1:2])
    view = expected["usual"]["show"]
    assert (view.count("exact)"), view.count("approximate")) == (5, len(PATTERNS) - 5), view
    write("models/expected.json.gz", expected)


if __name__ == "__main__":
    main()
