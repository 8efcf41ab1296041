"""G-ToPSS answers as the law does."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.papers.ctps.concept_worlds import build_matcher, check_steps, events, list_answers, steps

from tidings.bench.workloads import workload
from tidings.errors import Unsupported

QUIET = examples(100, suppress_health_check=list(HealthCheck))


@QUIET
@given(steps(), st.lists(events(), min_size=1, max_size=4))
def test_every_step_leaves_the_answers_of_the_law(done, seen):
    check_steps("g-topss", done, seen)


def test_names_and_values_are_found_below_what_is_asked():
    filters = {"a": "contact = 'x'", "b": "call = 'x'", "c": "item is a 'computer'", "d": "item = 'computer'"}
    assert list_answers("g-topss", filters, {"email": "x", "item": ["phablet", "toy"]}) == ["a", "c"]
    assert list_answers("g-topss", {"a": "email = 'y'"}, {"email": "x", "call": "y"}) == []


def test_what_it_has_not_is_refused_by_name():
    with pytest.raises(Unsupported, match=r"td\.Matcher") as caught:
        build_matcher("g-topss").add("s", "email starts with 'x'")
    assert caught.value.kind == "g-topss"


@pytest.mark.parametrize("height", [1, 3])
def test_the_papers_workload_has_the_answers_of_brute_force(height):
    work = workload(f"concepts:height={height}")
    subscriptions, seen = list(work.pairs(300, 3)), work.event_rows(20, 3)
    ids = []
    for kind in ("brute", "g-topss"):
        made = work.matcher(kind)
        made.add_many(subscriptions)
        made.remove_many([id for id, _ in subscriptions[100:150]])
        ids.append([sorted(ids) for ids in made.match_many(seen).by_event()])
    assert ids[0] == ids[1]
