"""OPS answers as the law does."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.papers.ctps.concept_worlds import ONTOLOGY, build_matcher, check_steps, events, list_answers, steps

from tidings.bench.workloads import workload
from tidings.errors import Unsupported
from tidings.model import IsA, Test
from tidings.papers.ctps.ops import Ops

QUIET = examples(100, suppress_health_check=list(HealthCheck))


@QUIET
@given(steps(), st.lists(events(), min_size=1, max_size=4))
def test_every_step_leaves_the_answers_of_the_law(done, seen):
    check_steps("ops", done, seen)


def test_names_and_values_are_found_below_what_is_asked():
    filters = {"a": "contact = 'x'", "b": "call = 'x'", "c": "item is a 'computer'", "d": "item = 'computer'"}
    assert list_answers("ops", filters, {"email": "x", "item": ["phablet", "toy"]}) == ["a", "c"]
    assert list_answers("ops", {"a": "email = 'y'"}, {"email": "x", "call": "y"}) == []


def test_what_it_has_not_is_refused_by_name():
    with pytest.raises(Unsupported, match=r"td\.Matcher") as caught:
        build_matcher("ops").add("s", "email starts with 'x'")
    assert caught.value.kind == "ops"


@pytest.mark.parametrize("height", [1, 3])
def test_the_papers_workload_has_the_answers_of_brute_force(height):
    work = workload(f"concepts:height={height}")
    subscriptions, seen = list(work.pairs(300, 3)), work.event_rows(20, 3)
    ids = []
    for kind in ("brute", "ops"):
        made = work.matcher(kind)
        made.add_many(subscriptions)
        made.remove_many([id for id, _ in subscriptions[100:150]])
        ids.append([sorted(ids) for ids in made.match_many(seen).by_event()])
    assert ids[0] == ids[1]


def test_an_index_of_possible_edges_beyond_the_limit_is_refused():
    with pytest.raises(Unsupported, match="all possible edges"):
        Ops(ONTOLOGY, limit=20).compile_filter(Test("place", IsA("toy", "product")))


def test_the_index_of_possible_edges_does_not_grow_with_subscriptions():
    made = Ops(ONTOLOGY)
    sizes = []
    for at in range(20):
        made.add_many([(at, made.compile_filter(Test("desk", IsA("phone", "product"))))])
        sizes.append(made.index_bytes)
    assert len(set(sizes)) == 1
    for at in range(20):
        made.remove(at)
    assert made.index_bytes == 0
