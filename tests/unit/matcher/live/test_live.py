"""Subscriptions that change: held against one plain matcher, whoever writes, and whenever a writer dies."""

import json
import pickle
import shutil
import tempfile
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tidings as td
from tidings.errors import BadSubscriptions, SnapshotError, TidingsError
from tidings.matcher.live import claims, versions
from tidings.matcher.live.claims import Claim
from tidings.matcher.live.sharded_store import compute_shard
from tidings.matcher.snapshot.snapshot_folder import OURS, list_names
from tidings.matcher.tuning import LIVE_TUNING, LiveTuning
from tidings.testing.strategies import NOW

FILTERS = (
    "a = 1",
    "a in [0 .. 3)",
    "a = 'x'",
    "a starts with 'x'",
    "not a = 'y'",
    "b > 1 and a < 5",
    "b = 'z' or c = 'y'",
    "b < a",
    "c exists",
    "b is null",
    "none(c) = 'w'",
    "c = true",
)
BAD = ("a = ", "and", "a near 5")
EVENTS = (
    {"a": 1, "b": 2, "c": "y"},
    {"a": 4, "b": 1},
    {"a": "x", "b": "z"},
    {"a": "xy", "c": ["w", "y"]},
    {"b": 3, "c": True},
    {},
)
START = {"s1": "a = 1", "s2": "b > 1", "s3": "a in [0 .. 3)"}
TEXT = ("s1", "s2", "ä", "", "4", "long" * 9)
NUMBERS = (0, 1, 7, -3, 2**40, 4)


QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None


def needs_of(matcher):
    """What is read of events, whatever the order in which filters came."""
    return matcher.needs()


def list_answers(matcher):
    """Who hears of which event, and which cannot be read."""
    matches = matcher.match_many(list(EVENTS), on_error="collect")
    return sorted(matches, key=str), sorted(letter.index for letter in matches.dead_letters)


def build_fresh(filters):
    made = td.Matcher("brute")
    made.add_many(filters.items())
    return made


def list_data_files(folder):
    return {path.name for path in folder.iterdir() if OURS.fullmatch(path.name)}


def list_named_files(folder):
    numbers = [int(path.stem) for path in (folder / "versions").glob("*.json")]
    kept = [versions.read_version(folder, number) for number in numbers]
    return {name for version in kept for name in list_names(version.files, version.shards)}


class Changing(RuleBasedStateMachine):
    """Several `td.Live` on one folder, against one plain matcher and a dict of what is in force."""

    def __init__(self):
        super().__init__()
        self.base = tempfile.mkdtemp(dir=QUICK)
        self.tuning = LiveTuning(versions_kept=3, claims_kept=4)  # so that a few steps get there
        self.folder = Path(self.base, "live")
        self.model: dict = {}
        self.claimed: dict = defaultdict(dict)
        self.batches = count()

    @initialize(shards=st.sampled_from([1, 3]), ids=st.sampled_from([TEXT, NUMBERS]), several=st.integers(1, 3))
    def open_lives(self, shards, ids, several):
        self.shards, self.ids = shards, ids
        self.lives = [td.Live(self.folder, shards=shards, tuning=self.tuning) for _ in range(several)]

    def teardown(self):
        shutil.rmtree(self.base)

    def writer(self, at):
        return self.lives[at % len(self.lives)]

    @rule(at=st.integers(0, 2), id=st.integers(0, 5), text=st.sampled_from(FILTERS + BAD[:1]))
    def add(self, at, id, text):
        before, model = self.lives[0].version.number, build_fresh(self.model)
        try:
            model.add(self.ids[id], text)
        except TidingsError as problem:
            with pytest.raises(type(problem)):
                self.writer(at).add(self.ids[id], text)
            assert self.lives[0].version.number == before
            return
        assert self.writer(at).add(self.ids[id], text) == before + 1
        self.model[self.ids[id]] = text

    @rule(
        at=st.integers(0, 2),
        additions=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(FILTERS + BAD)), max_size=5),
        removed=st.lists(st.integers(0, 5), max_size=3),
        on_error=st.sampled_from(["raise", "collect"]),
        stranger=st.integers(0, 9),
    )
    def change(self, at, additions, removed, on_error, stranger):
        additions = [(self.ids[id], text) for id, text in additions]
        if stranger == 0:
            additions.append((NUMBERS[1] if self.ids is TEXT else TEXT[1], "c exists"))  # ids are not mixed
        removed = [self.ids[id] for id in removed]
        before, model = self.lives[0].version.number, build_fresh(self.model)
        gone = {id for id in removed if id in model}
        model.remove_many(gone)
        errors = [error for pair in additions for error in model.add_many([pair], on_error="collect")]
        if errors and on_error == "raise":
            with pytest.raises(BadSubscriptions) as refused:
                self.writer(at).change(additions, removed)
            caught, left = refused.value.errors, self.model
        else:
            change = self.writer(at).change(additions, removed, on_error=on_error)
            caught, left = change.refused, {id: td.parse(td.render(model[id])) for id in model}
            good = Counter(id for id, _ in additions) - Counter(id for id, _ in errors)
            assert (change.added, change.removed) == (len(good), sum(id not in model for id in gone))
            assert change.version == before + (change.added + change.removed > 0)
        assert [(id, type(problem)) for id, problem in caught] == [(id, type(problem)) for id, problem in errors]
        self.model = left

    @rule(at=st.integers(0, 2), id=st.integers(0, 5))
    def remove(self, at, id):
        before = self.lives[0].version.number
        was_there = self.model.pop(self.ids[id], None) is not None
        assert self.writer(at).remove(self.ids[id]) == before + was_there

    @rule(at=st.integers(0, 2))
    def reopen(self, at):
        self.lives[at % len(self.lives)] = td.Live(self.folder, tuning=self.tuning)

    @rule(at=st.integers(0, 2), query=st.sampled_from(["one", "a/b ü"]))
    def claim(self, at, query):
        batch, facts = next(self.batches), {"now": f"{at}", "n": at}
        claim = self.writer(at).claim(query, batch, facts=facts)
        assert claim == Claim(self.lives[0].version.number, facts)
        mine = self.claimed[query]
        mine[batch] = claim, list_answers(build_fresh(self.model)), set(self.model)
        for old in sorted(mine)[: -self.tuning.claims_kept]:
            del mine[old]

    @precondition(lambda self: any(self.claimed.values()))
    @rule(at=st.integers(0, 2), data=st.data())
    def claim_again(self, at, data):
        every = [(query, batch) for query, mine in self.claimed.items() for batch in mine]
        query, batch = data.draw(st.sampled_from(every))
        claim, then, ids = self.claimed[query][batch]
        assert self.writer(at).claim(query, batch, facts={"other": 1}) == claim
        opened = self.writer(at).open(claim.version)
        assert (list_answers(opened), set(opened)) == (then, ids)

    @invariant()
    def all_is_as_in_one_matcher(self):
        if not hasattr(self, "lives"):
            return
        live, model = self.lives[-1], build_fresh(self.model)
        version, whole = live.version, live.open()
        assert len(live) == version.count == len(whole) == len(self.model)
        assert set(live) == set(self.model)
        assert list_answers(whole) == list_answers(model)
        assert needs_of(whole) == needs_of(model)
        apart = [td.Matcher(content=versions.load_version(self.folder, version, shard)) for shard in range(self.shards)]
        assert [len(live) for live in apart] == [shard["count"] for shard in version.shards]
        assert sorted((pair for live in apart for pair in list_answers(live)[0]), key=str) == list_answers(model)[0]
        for shard, opened in enumerate(apart):
            assert list_answers(opened)[1] == list_answers(model)[1]
            assert needs_of(opened) == needs_of(model)
            assert {compute_shard(id, self.shards) for id in opened} <= {shard}

    @invariant()
    def nothing_that_is_named_goes_and_nothing_else_stays(self):
        if not hasattr(self, "lives"):
            return
        numbers = sorted(int(path.stem) for path in (self.folder / "versions").glob("*.json"))
        newest = numbers[-1]
        wanted = {claim.version for mine in self.claimed.values() for claim, *_ in mine.values()}
        assert wanted | set(range(max(1, newest - 2), newest + 1)) <= set(numbers)
        assert list_data_files(self.folder) == list_named_files(self.folder)


TestChanging = Changing.TestCase
TestChanging.settings = settings(
    max_examples=25, stateful_step_count=15, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)


# Kinds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 3])
def test_filters_of_different_kinds_live_side_by_side_in_all_shards(tmp_path, shards):
    live = td.Live(tmp_path / "live", shards=shards)
    numbers, texts = ([(f"{word}{n}", text) for n in range(6)] for word, text in KINDS.items())
    live.add_many(numbers)
    live.add_many(texts)
    assert sorted(live.open().match({"price": "much"})) == [id for id, _ in texts]
    assert sorted(live.open().match({"price": 5})) == [id for id, _ in numbers]
    declared = td.Live(tmp_path / "declared", shards=shards, schema=td.Schema({"price": "number"}))
    with pytest.raises(BadSubscriptions, match="`price` is declared number"):
        declared.add_many([*numbers, *texts])
    assert len(declared) == 0


KINDS = {"n": "price < 9000", "t": "price = 'much'"}


def test_ids_are_not_mixed_across_shards(tmp_path):
    live = td.Live(tmp_path / "live", shards=3)
    live.add_many([(n, "a = 1") for n in range(9)])
    for n in range(9):
        with pytest.raises(TidingsError, match="ids are all text or all integers"):
            live.add(f"t{n}", "a = 1")
    assert live.version.ids == "integer"
    assert live.remove("7") == live.version.number  # not there, and no mistake
    assert len(live) == 9


def test_once_all_are_gone_ids_may_be_of_the_other_kind(tmp_path):
    live = td.Live(tmp_path / "live", shards=3)
    live.add_many([(1, "a = 1"), (2, "a = 1")])
    live.change([("one", "a = 1")], [1, 2])
    assert (live.version.ids, set(live)) == ("text", {"one"})


# What is refused -----------------------------------------------------------------------------------


def build_live(folder, **keywords):
    live = td.Live(folder, **keywords)
    live.add_many(START)
    return live


def rewritten(live, **changes):
    path = live.folder / "versions" / f"{live.version.number:08}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def test_a_newer_format_is_refused_by_its_number(tmp_path):
    live = build_live(tmp_path / "live")
    path = rewritten(live, format=versions.FORMAT + 1, tidings="99.0")
    for ask in (lambda: td.Live(live.folder), live.open, lambda: live.add("s", "a = 1"), lambda: live.claim("q", 1)):
        with pytest.raises(
            SnapshotError, match=r"has format 6 \(by tidings 99.0\); this version reads up to 5"
        ) as caught:
            ask()
        assert str(path) in str(caught.value)


def test_a_version_that_is_altered_is_refused_by_name(tmp_path):
    live = build_live(tmp_path / "live")
    path = rewritten(live, count=2)
    with pytest.raises(SnapshotError, match="is altered: its checksum is another") as caught:
        live.open()
    assert str(path) in str(caught.value)
    path.write_text("{")
    with pytest.raises(SnapshotError, match="cannot be read"):
        live.open()


def test_an_old_version_that_cannot_be_read_does_not_stop_writers(tmp_path):
    live = build_live(tmp_path / "live")
    live.claim("q", 1)
    rewritten(live, count=7)
    for number in range(4):
        versions.write_version(  # what a writer does that has it open
            live.folder, number + 3, [], matcher=td.Matcher(), position={}, ids=None
        )
        claimed = claims.find_claimed_versions(live.folder, silent_seconds=LIVE_TUNING.silent_seconds)
        versions.remove_old(live.folder, claimed, keep=2)
    assert live.version.number == 6


def test_a_data_file_that_is_missing_or_altered_is_refused_by_name(tmp_path):
    live = build_live(tmp_path / "live")
    path = next(live.folder.glob("segment-*.bin"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=path.name):
        td.Matcher.open(live.folder, verify=True)
    path.unlink()
    with pytest.raises(SnapshotError, match=path.name):
        live.open()


def test_a_version_that_is_gone_is_named_and_so_are_those_that_are_there(tmp_path):
    live = build_live(tmp_path / "live")
    with pytest.raises(SnapshotError, match=r"has no version 9 \(any more\): there are 1 to 2"):
        live.open(9)


def test_a_matcher_opens_a_folder_of_versions_and_does_not_save_into_it(tmp_path):
    live = build_live(tmp_path / "live", shards=3)
    matcher = td.Matcher.open(live.folder, verify=True)
    assert list_answers(matcher) == list_answers(build_fresh(START))
    with pytest.raises(SnapshotError, match="holds versions of subscriptions"):
        matcher.save(live.folder)
    assert list_answers(live.open()) == list_answers(build_fresh(START))


def test_live_does_not_take_the_folder_of_a_snapshot(tmp_path):
    fresh_one = td.Matcher()
    fresh_one.add_many(START)
    fresh_one.save(tmp_path / "snapshot")
    with pytest.raises(SnapshotError, match="is a snapshot"):
        td.Live(tmp_path / "snapshot")
    assert list_answers(td.Matcher.open(tmp_path / "snapshot")) == list_answers(build_fresh(START))
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="file"):
        td.Live(tmp_path / "file")


SCHEMA = td.Schema({"a": "number", "b": "number", "c": "text"})
ONTOLOGY = td.Ontology.from_dict({"attributes": {"a": {"synonyms": ["alpha"]}}})
SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
REGIONS = td.Regions.from_dict({"type": "Feature", "id": "centre", "geometry": SQUARE})


def test_what_a_folder_was_made_with_comes_back_and_is_not_changed(tmp_path):
    around = {"schema": SCHEMA, "ontology": ONTOLOGY, "regions": REGIONS, "now": NOW}
    build_live(tmp_path / "live", shards=2, **around)
    again = td.Live(tmp_path / "live", shards=2, **around)
    assert set(again.open().match({"alpha": 1})) == {"s1", "s3"}
    assert td.Live(tmp_path / "live", now=datetime(NOW.year, NOW.month, NOW.day, NOW.hour, NOW.minute, tzinfo=UTC))
    with pytest.raises(SnapshotError, match="has 2 shards, not 3"):
        td.Live(tmp_path / "live", shards=3)
    with pytest.raises(SnapshotError, match="another `schema`"):
        td.Live(tmp_path / "live", schema=td.Schema({"a": "text"}))
    with pytest.raises(TidingsError, match="shards is 1 or more"):
        td.Live(tmp_path / "other", shards=0)


def test_a_moment_without_a_zone_is_the_same_when_it_is_opened_again(tmp_path):
    naive = datetime(2024, 5, 1)  # noqa: DTZ001 - what people write
    build_live(tmp_path / "live", now=naive)
    assert td.Live(tmp_path / "live", now=naive).open().now == td.Matcher(now=naive).now


def test_it_travels_as_its_path_and_is_not_made_anew_where_nobody_sees_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    live = td.Live("live", follow=tmp_path / "changes")
    live.add_many({f"s{n}": f"a = {n}" for n in range(1000)})
    packed = pickle.dumps(live)
    assert len(packed) < 500
    monkeypatch.chdir("/")
    again = pickle.loads(packed)
    assert (len(again), again.follow) == (1000, live.follow)
    shutil.rmtree(tmp_path / "live")
    with pytest.raises(SnapshotError, match="holds no version"):
        pickle.loads(packed)
    assert not (tmp_path / "live").exists()


def test_a_folder_that_was_made_anew_is_not_taken_for_the_old_one(tmp_path):
    live = td.Live(tmp_path / "live")
    live.add("old", "a = 1")
    shutil.rmtree(tmp_path / "live")
    td.Live(tmp_path / "live").add("new", "a = 2")
    live.add("more", "a = 3")
    assert set(live) == {"new", "more"}
