"""Changes of subscriptions: when they are looked at changes nothing about what is in force in the end."""

import itertools
import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import TidingsError
from tidings.matcher.live.change_rounds import ChangeStep, split_rounds
from tidings.matcher.live.feeds import Changes

QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None

IDS = ("s1", "s2", "s3", 1, 2)
GOOD = ("a = 1", "a < 2 or b exists", "a in {3, 4}")
BAD = ("a =", "and", 7)

words = st.lists(
    st.one_of(
        st.builds(ChangeStep, st.sampled_from(IDS), st.sampled_from(GOOD + BAD)),
        st.builds(ChangeStep, st.sampled_from(IDS), removes=st.just(True)),
        st.builds(ChangeStep, st.sampled_from([None, 1.5, True]), st.sampled_from(GOOD)),
        st.builds(ChangeStep, st.none(), problem=st.just(TidingsError("this cannot be read"))),
    ),
    max_size=16,
)


class Told:
    """A feed that has told so many of its changes."""

    def __init__(self, steps):
        self.steps, self.position = steps, 0

    def changes(self, position, current):
        del current
        read = position.get("read", 0)
        return Changes(self.steps[read : self.position], {"read": self.position} if self.position else {})


def list_in_force(live):
    opened = live.open()
    return {id: td.render(opened[id]) for id in opened}


def list_refusals(refused):
    return [(id, str(problem)) for id, problem in refused]


def follow_feed(folder, steps, ends, shards):
    """Follow a feed that is looked at when it has told so many; return what is in force, and all refusals."""
    feed, refused = Told(steps), []
    live = td.Live(folder, shards=shards, follow=feed)
    for feed.position in [*ends, len(steps)]:
        refused += live.sync().refused
    return list_in_force(live), list_refusals(refused)


def apply_one_by_one(steps):
    """Return the same by the definition: each change, by itself, after all before it."""
    matcher, refused = td.Matcher("brute"), []
    for step in steps:
        try:
            if step.problem is not None:
                raise step.problem
            if step.removes:
                matcher.remove(step.id) if step.id in matcher else None
            else:
                matcher.add(step.id, step.filter, notation=step.notation)
        except TidingsError as problem:
            refused.append((step.id, problem))
    return {id: td.render(matcher[id]) for id in matcher}, list_refusals(refused)


@given(words, st.lists(st.integers(0, 16), max_size=4), st.sampled_from([1, 3]))
def test_any_split_of_a_feed_into_syncs_gives_the_same_subscriptions_and_refusals(steps, ends, shards):
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        assert follow_feed(folder, steps, sorted(min(end, len(steps)) for end in ends), shards) == apply_one_by_one(
            steps
        )


@given(words, st.sets(st.integers(0, 16), max_size=3), st.booleans())
@examples(30)
def test_change_files_seen_together_or_one_by_one_give_the_same(steps, cuts, together):
    rows = [step for step in steps if step.problem is None and isinstance(step.id, str)]
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(rows)), len(rows)]
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        changes, refused = Path(folder, "changes"), []
        changes.mkdir()
        live = td.Live(Path(folder, "live"), follow=changes)
        for number, (start, end) in enumerate(itertools.pairwise(bounds)):
            texts = [json.dumps({"id": row.id, "filter": row.filter}) for row in rows[start:end]]
            (changes / f"{number}.jsonl").write_text("".join(f"{text}\n" for text in texts))
            refused += [] if together else live.sync().refused
        refused += live.sync().refused
        assert (list_in_force(live), list_refusals(refused)) == apply_one_by_one(rows)


@given(words, st.lists(st.sampled_from(IDS), unique=True), st.sampled_from([1, 3]))
@examples(30)
def test_a_change_by_hand_removes_first_and_then_adds_in_order(steps, removed, shards):
    added = [step for step in steps if step.problem is None and not step.removes]
    first = [ChangeStep("s1", "a = 9"), ChangeStep("s2", "a = 9")]
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        live = td.Live(folder, shards=shards)
        live.add_many([(step.id, step.filter) for step in first])
        change = live.change([step[:3] for step in added], removed, on_error="collect")
        removals = [ChangeStep(id, removes=True) for id in removed]
        assert (list_in_force(live), list_refusals(change.refused)) == apply_one_by_one([*first, *removals, *added])


@given(words)
def test_where_every_id_of_a_kind_comes_once_there_is_one_round(steps):
    good = [step for step in steps if isinstance(step.id, str)]
    once = {step.id: step for step in good}.values()
    assert len(list(split_rounds(enumerate(once)))) == bool(once)
    removed = sum(step.removes for step in good)
    assert len(list(split_rounds(enumerate(good)))) <= 1 + removed
