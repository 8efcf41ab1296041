"""MIC answers as the law does."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.papers.ctps.concept_worlds import ONTOLOGY, build_matcher, check_steps, events, list_answers, steps

from tidings.bench.workloads import workload
from tidings.errors import Unsupported
from tidings.model import IsA, Test
from tidings.papers.ctps.mic import Mic

QUIET = examples(100, suppress_health_check=list(HealthCheck))


@QUIET
@given(steps(), st.lists(events(), min_size=1, max_size=4))
def test_every_step_leaves_the_answers_of_the_law(done, seen):
    check_steps("mic", done, seen)


def test_names_and_values_are_found_below_what_is_asked():
    filters = {"a": "contact = 'x'", "b": "call = 'x'", "c": "item is a 'computer'", "d": "item = 'computer'"}
    assert list_answers("mic", filters, {"email": "x", "item": ["phablet", "toy"]}) == ["a", "c"]
    assert list_answers("mic", {"a": "email = 'y'"}, {"email": "x", "call": "y"}) == []


def test_a_name_below_two_roots_is_found_whichever_root_was_asked_first():
    filters = {"a": "work exists", "b": "office is a 'device'", "c": "place is a 'device'"}  # office is both
    for order in (["a", "b", "c"], ["b", "a"], ["c", "a", "b"]):
        asked = {id: filters[id] for id in order}
        assert list_answers("mic", asked, {"desk": "device"}) == sorted(order)


def test_what_it_has_not_is_refused_by_name():
    with pytest.raises(Unsupported, match=r"td\.Matcher") as caught:
        build_matcher("mic").add("s", "email starts with 'x'")
    assert caught.value.kind == "mic"


@pytest.mark.parametrize("height", [1, 3])
def test_the_papers_workload_has_the_answers_of_brute_force(height):
    work = workload(f"concepts:height={height}")
    subscriptions, seen = list(work.pairs(300, 3)), work.event_rows(20, 3)
    ids = []
    for kind in ("brute", "mic"):
        made = work.matcher(kind)
        made.add_many(subscriptions)
        made.remove_many([id for id, _ in subscriptions[100:150]])
        ids.append([sorted(ids) for ids in made.match_many(seen).by_event()])
    assert ids[0] == ids[1]


def test_an_expansion_beyond_the_limit_is_refused_and_changes_nothing():
    made = Mic(ONTOLOGY, limit=15)
    few, many = (made.compile_filter(Test("item", IsA(word, "product"))) for word in ("laptop", "device"))
    made.add_many([("few", few)])
    with pytest.raises(Unsupported, match="the limit is 15; use `ctps`"):
        made.compile_filter(Test("place", IsA("device", "product")))  # three names, six concepts
    with pytest.raises(Unsupported, match="entries"):
        made.add_many([(at, many) for at in range(10)])
    assert (made.explain()["filters"], made.explain()["entries"]) == (1, 1)
    made.remove("few")
    assert made.explain()["entries"] == 0
