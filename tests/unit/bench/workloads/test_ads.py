"""The car-ad workload: the same for everyone, plausible, and searches catch a sensible share of the ads."""

import subprocess
import sys
from collections import Counter
from statistics import mean, median

import pytest

import tidings as td
from tidings.bench.workloads import CAR_SCHEMA, NOW, car_ads, saved_searches, zipf


@pytest.fixture(scope="module")
def ads():
    return car_ads(2000, seed=11)


@pytest.fixture(scope="module")
def searches():
    return saved_searches(1000, seed=11)


def test_a_seed_gives_the_same_workload_every_time(ads, searches):
    assert car_ads(2000, seed=11) == ads
    assert saved_searches(1000, seed=11) == searches
    assert car_ads(2000, seed=12) != ads
    assert car_ads(10, seed=11) == ads[:10]


def test_every_search_parses_against_the_schema(searches):
    schema = td.Schema(CAR_SCHEMA)
    for _, text in searches:
        td.parse(text, schema=schema)


def test_searches_have_one_to_six_predicates(searches):
    from tidings.model import And, Or, walk_tests

    sizes = Counter(len(tree.parts) if isinstance(tree := td.parse(text), And) else 1 for _, text in searches)
    assert min(sizes) == 1
    assert max(sizes) == 6
    trees = [td.parse(text) for _, text in searches]
    assert any(isinstance(part, Or) for tree in trees if isinstance(tree, And) for part in tree.parts)
    assert {name for tree in trees for name, _ in walk_tests(tree)} <= set(CAR_SCHEMA)


def test_one_search_in_twenty_draws_a_polygon(searches):
    share = sum("POLYGON" in text for _, text in searches) / len(searches)
    assert 0.03 < share < 0.07


def test_ads_are_read_without_a_single_bad_one(ads, searches):
    matcher = td.Matcher(schema=td.Schema(CAR_SCHEMA), now=NOW)
    matcher.add_many(searches[:5])
    assert not matcher.match_many(ads, on_error="collect").dead_letters


def test_ads_lack_fields_and_have_nulls_and_several_tags(ads):
    assert any("price" not in ad for ad in ads)
    assert any(ad.get("price", 0) is None for ad in ads)
    assert {len(ad["tags"]) for ad in ads} >= {0, 1, 3}
    assert any("rating" not in ad["seller"] for ad in ads)


def test_makes_follow_zipf_and_prices_fall_with_age(ads):
    makes = Counter(ad["make"] for ad in ads).most_common()
    assert makes[0][1] > 5 * makes[-5][1]
    priced = [ad for ad in ads if ad.get("price")]
    young = median(ad["price"] for ad in priced if ad["year"] >= NOW.year - 2)
    old = median(ad["price"] for ad in priced if ad["year"] <= NOW.year - 12)
    assert young > 3 * old


def test_ads_are_caught_by_a_sensible_number_of_searches(ads, searches):
    matcher = td.Matcher(now=NOW)
    matcher.add_many(searches)
    caught = [len(ids) for ids in matcher.match_many(ads[:150]).by_event()]
    assert 0.001 < mean(caught) / len(searches) < 0.05
    assert sum(1 for count in caught if count) > len(caught) / 2


def test_zipf_weights_accumulate():
    assert zipf(3) == pytest.approx([1, 1.5, 1.8333333])


def test_workloads_need_no_test_tools():
    program = (
        "import sys; import tidings.bench.workloads; sys.exit('hypothesis' in sys.modules or 'pytest' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_strategies_without_hypothesis_say_what_to_install():
    program = """
import sys
sys.modules["hypothesis"] = None
import tidings as td
try:
    from tidings.testing import strategies
except td.TidingsError as error:
    print(isinstance(error, ImportError), error)
"""
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.startswith("True")
    assert "pip install hypothesis" in output
