"""What version 0.1.0 wrote at commit f057d71 is opened, means what it meant, and is written again as it was."""

import hashlib
import json

import pyarrow as pa
import pytest
from tests.older.forms import (
    HERE,
    HORIZONS,
    collect_answer,
    forecast_now,
    list_forecasts,
    read,
    read_data,
    unpack,
    watch_patterns,
)

import tidings as td

SNAPSHOTS = HERE / "snapshots"
MODELS = ("usual", "fading", "fading-in-time", "plain-chain")
ESTIMATORS = ("both", "chain", "direct", "printed")
PLAIN = ("shapes-60", "shapes-84", "shapes-100", "kinds", "names")
FORETELLING = ("foretelling", "learning", "learning-on")


def is_same(answer, expected):
    """Compare answers; the last of a row is a probability, whose last digits are the processor's."""
    assert [row[:-1] for row in answer] == [row[:-1] for row in expected]
    assert [row[-1] for row in answer] == pytest.approx([row[-1] for row in expected], rel=1e-12, abs=1e-15)


# Snapshots -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def snapshots():
    return read("snapshots/expected.json.gz")


def list_matches(matcher, events):
    matches = matcher.match_many(events, on_error="collect")
    return [sorted(ids) for ids in matches.by_event()], [letter.index for letter in matches.dead_letters]


def read_manifest(folder):
    """Return what a snapshot says of itself, but for the version that wrote it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return {name: value for name, value in manifest.items() if name not in ("tidings", "checksum")}


def read_contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


@pytest.mark.parametrize("form", ["engine", "brute"])
def test_a_snapshot_means_what_it_meant(snapshots, form):
    opened, expected = td.Matcher.open(SNAPSHOTS / form), snapshots[form]
    assert list_matches(opened, snapshots["events"]) == (expected["heard"], expected["bad"])
    for event, ids in zip(snapshots["events"], expected["heard"], strict=True):
        if ids:
            assert sorted(opened.match(event)) == ids


@pytest.mark.parametrize("form", ["engine", "brute"])
def test_filters_are_read_back_from_a_snapshot(snapshots, form):
    opened = td.Matcher.open(SNAPSHOTS / form)
    vocabulary = {"schema": opened.schema, "ontology": opened.ontology, "regions": opened.regions}
    assert set(opened) <= set(snapshots["filters"])
    assert len(opened) > 90
    for id in opened:
        assert json.loads(td.render(opened[id], notation="json")) == snapshots["filters"][id]
        assert opened[id] == td.parse(snapshots["filters"][id], notation="json", **vocabulary)


@pytest.mark.parametrize("form", ["engine", "brute"])
def test_a_snapshot_can_be_changed(snapshots, form):
    opened, expected = td.Matcher.open(SNAPSHOTS / form), snapshots[form]
    kept_ids = list(opened)[::2]
    for id in set(opened) - set(kept_ids):
        opened.remove(id)
    half = [[id for id in ids if id in kept_ids] for ids in expected["heard"]]
    assert list_matches(opened, snapshots["events"]) == (half, expected["bad"])
    gone_ids = {id for ids in expected["heard"] for id in ids} - set(kept_ids)
    opened.add_many([(id, td.parse(snapshots["filters"][id], notation="json")) for id in gone_ids])
    assert list_matches(opened, snapshots["events"]) == (expected["heard"], expected["bad"])


@pytest.mark.parametrize("form", ["engine", "brute", "integers"])
def test_a_snapshot_is_saved_again_byte_for_byte(tmp_path, form):
    td.Matcher.open(SNAPSHOTS / form).save(tmp_path / "again")
    assert read_contents(tmp_path / "again") == read_contents(SNAPSHOTS / form)
    assert read_manifest(tmp_path / "again") == read_manifest(SNAPSHOTS / form)


def test_the_same_subscriptions_are_written_as_the_same_bytes(snapshots, tmp_path):
    expected, matcher = snapshots["integers"], td.Matcher()
    matcher.add_many((number - 3, text) for number, text in enumerate(expected["filters"]))
    matcher.save(tmp_path / "now")
    assert read_contents(tmp_path / "now") == read_contents(SNAPSHOTS / "integers")
    assert read_manifest(tmp_path / "now") == read_manifest(SNAPSHOTS / "integers")


def test_a_snapshot_with_integer_ids_means_what_it_meant(snapshots):
    opened, expected = td.Matcher.open(SNAPSHOTS / "integers"), snapshots["integers"]
    assert list_matches(opened, expected["events"]) == (expected["heard"], [])
    assert {id: opened[id] for id in opened} == {
        number - 3: td.parse(text) for number, text in enumerate(expected["filters"])
    }


# Folders of versions -------------------------------------------------------------------------------


@pytest.fixture
def versions(tmp_path):
    return unpack("snapshots/versions.tar.gz", tmp_path / "versions")


def test_every_version_of_a_folder_means_what_it_meant(snapshots, versions):
    live = td.Live(versions)
    assert live.version.number == max(map(int, snapshots["versions"]))
    for number, expected in snapshots["versions"].items():
        opened = live.open(int(number))
        assert sorted(opened) == expected["ids"]
        assert list_matches(opened, snapshots["events"]) == (expected["heard"], expected["bad"])
    assert list_matches(td.Matcher.open(versions), snapshots["events"]) == (expected["heard"], expected["bad"])


def test_what_was_claimed_from_a_folder_of_versions_stays(snapshots, versions):
    live = td.Live(versions)
    for claim_record in snapshots["claims"]:
        claim = live.claim(claim_record["query"], claim_record["batch"], facts={"now": "another"})
        assert (claim.version, claim.facts) == (claim_record["version"], claim_record["facts"])
    assert live.claim("first query", 5).version == live.version.number


def test_a_folder_of_versions_goes_on_with_changes_that_it_has_not_read(snapshots, versions, tmp_path):
    changes = tmp_path / "changes"
    changes.mkdir()
    ford = {"attr": "make", "op": "=", "value": "ford"}
    rows = {"002": {"id": "never", "filter": "true"}, "003": {"id": "place 1", "filter": ford}}
    for name, row in rows.items():
        (changes / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    live = td.Live(versions, follow=changes)
    last = live.version.number
    change = live.sync()
    assert (change.version, change.added, change.refused) == (last + 1, 1, [])
    assert set(live) == {*snapshots["versions"][str(last)]["ids"], "place 1"}
    assert live.add("one more", "price > 5") == last + 2
    assert "place 1" in live.open().match({"make": "ford"})
    assert sorted(live.open(last)) == snapshots["versions"][str(last)]["ids"]


# Models --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    return read("models/expected.json.gz")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_foretells_what_it_foretold(models, name):
    expected = models[name]
    watch = watch_patterns(HERE / "models" / f"{name}.model", models["patterns"])
    is_same(forecast_now(watch, HORIZONS[:2]), expected["before"])
    is_same(list_forecasts(watch.detect_many(models["events"]).forecasts), expected["told"])
    is_same(forecast_now(watch), expected["after"])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_shows_what_it_has_counted(models, name):
    assert td.Model.load(HERE / "models" / f"{name}.model").show() == models[name]["show"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_adds_up_and_its_counts_are_reckoned_in_every_way(models, name):
    model, expected = td.Model.load(HERE / "models" / f"{name}.model"), models[name]
    is_same(forecast_now(watch_patterns(model + model, models["patterns"][:7]), HORIZONS[2:]), expected["twice"])
    for estimator in ESTIMATORS:
        watch = watch_patterns(model.using(estimator=estimator), models["patterns"][:-1])
        watch.detect_many(models["events"][:33])
        is_same(forecast_now(watch, HORIZONS[1:2]), expected[estimator])


def read_body(path):
    """Return what a model's file says, unpacked: what packs it may pack otherwise one day."""
    content = path.read_bytes()
    head, size = content.partition(b"\n")[0] + b"\n", 8
    rest = content[len(head) + 4 :]
    length = int.from_bytes(rest[:size], "little")
    return head, pa.decompress(rest[size:], decompressed_size=length, codec="zstd", asbytes=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_saved_again_byte_for_byte(tmp_path, name):
    path = HERE / "models" / f"{name}.model"
    td.Model.load(path).save(tmp_path / "again.model")
    assert read_body(tmp_path / "again.model") == read_body(path)


def test_the_same_history_makes_the_same_model(models, tmp_path):
    watch = td.Detector()
    for pattern in models["patterns"][:-1]:
        watch.add(pattern["name"], pattern["pattern"], mode=pattern["mode"])
    model = td.train(watch, models["history"], **models["settings"]["usual"])
    assert model.show() == models["usual"]["show"]
    stood = watch_patterns(model, models["patterns"])
    stood.detect_many(models["events"])
    is_same(forecast_now(stood), models["usual"]["after"])


# States of detectors -------------------------------------------------------------------------------


def read_expected(name):
    """Return what is told to a detector of a state, and what it answers."""
    state = read(f"states/{name}.json.gz")
    return {"rest": state.pop("rest"), "end": state.pop("end")}, state


def check_same_answers(answer, expected):
    for name in ("told", "now"):
        is_same(answer.pop(name, []), expected.pop(name, []))
    assert answer == expected


@pytest.mark.parametrize("name", PLAIN + FORETELLING)
def test_a_detector_goes_on_from_its_state(name):
    inputs, expected = read_expected(name)
    expected.pop("again", None)
    watch = td.Detector.resume(read_data(f"states/{name}.state.gz"))
    check_same_answers(collect_answer(watch, **inputs), expected)


@pytest.mark.parametrize("name", PLAIN + FORETELLING)
def test_a_state_that_is_written_again_is_as_good(name):
    inputs, expected = read_expected(name)
    state = td.Detector.resume(read_data(f"states/{name}.state.gz")).snapshot()
    digest = expected.pop("again", None)
    assert digest is None or hashlib.blake2b(state).hexdigest() == digest
    check_same_answers(collect_answer(td.Detector.resume(state), **inputs), expected)


def test_ids_come_back_from_a_state_with_their_types():
    inputs, expected = read_expected("names")
    watch = td.Detector.resume(read_data("states/names.state.gz"))
    detections = collect_answer(watch, **inputs)["found"]
    kinds = [[type(id) for id in row[1]] + [type(value) for value in row[3].values()] for row in detections]
    assert kinds == [
        [type(id) for id in row[1]] + [type(value) for value in row[3].values()] for row in expected["found"]
    ]


def test_a_state_goes_on_with_other_patterns_beside():
    inputs, expected = read_expected("shapes-60")
    watch = td.Detector.resume(read_data("states/shapes-60.state.gz"))
    for name in [name for name in watch if name.startswith(("between", "both", "timed", "joined", "absence"))]:
        watch.remove(name)
    watch.add("another", "a = kind = 'a' and k = $x\nc = kind = 'c'\na ; c")
    detections = [row for row in collect_answer(watch, **inputs)["found"] if row[0] != "another"]
    assert detections == [row for row in expected["found"] if row[0] in watch]
