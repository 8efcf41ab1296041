"""The checker judges as a matcher and a detector do: what it takes they take, what they refuse it refuses."""

import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from tests.examples import examples

import tidings as td
from tidings.concepts import Vocabulary
from tidings.errors import TidingsError
from tidings.service import filter_admission
from tidings.service.checking import SubscriptionChecker, parse_moment
from tidings.service.pattern_model import PatternModel
from tidings.service.refusals import SubscriptionRefused
from tidings.testing.strategies import filters

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SCHEMA = td.Schema({"price": "number", "city": "text", "kind": "text"})
PATTERN = "a = kind = 'a'\nb = kind = 'b'\na ; b within 5 min"
TEXTS = [
    "price < 9000",
    "price < 9000 and city = 'Bern'",
    "not price < 9000 or city starts with 'B'",
    "price = 'cheap'",
    "cty = 'Bern'",
    "price < 3 furlngs",
    "city matches '(' ",
    "price < and",
    "city is a 'town'",
    "spot within @nowhere",
    "price < 3 USD",
    " and ".join(["(price = 1 or price = 2)"] * 12),
    "(" * 200 + "price = 1" + ")" * 200,
]


def check(checker, **members):
    return checker.check({"id": "s1", **members}, now=NOW)


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["open", "schema"])
@pytest.mark.parametrize("text", TEXTS)
def test_what_an_empty_matcher_takes_is_taken(schema, text):
    checker, matcher = SubscriptionChecker(Vocabulary(schema=schema)), td.Matcher(schema=schema)
    try:
        matcher.add("s1", text)
        matcher.compact()
    except TidingsError:
        with pytest.raises(SubscriptionRefused):
            check(checker, filter=text)
    else:
        assert check(checker, filter=text).text == text


@examples(100)
@given(tree=filters())
def test_whatever_filter_a_matcher_takes_is_taken(tree):
    text = td.render(tree)
    matcher = td.Matcher()
    try:
        matcher.add("s1", text)
    except TidingsError:
        with pytest.raises(SubscriptionRefused):
            check(CHECKER, filter=text)
    else:
        draft = check(CHECKER, filter=text)
        assert td.parse(draft.text) == td.parse(text)


CHECKER = SubscriptionChecker(Vocabulary())


def test_one_filter_plays_no_part_in_what_becomes_of_another():
    checker = SubscriptionChecker(Vocabulary())
    check(checker, filter="price < 9000")
    assert check(checker, filter="price = 'cheap'").text == "price = 'cheap'"
    with pytest.raises(SubscriptionRefused) as refusal:
        check(checker, filter="price <")
    assert "s1" not in str(refusal.value)


def test_what_was_accepted_is_forgotten_in_time(monkeypatch):
    monkeypatch.setattr(filter_admission, "MAX_ACCEPTED", 3)
    checker = SubscriptionChecker(Vocabulary(schema=SCHEMA))
    for number in range(10):
        check(checker, filter=f"price < {number} and city = '{number}'")
        with pytest.raises(SubscriptionRefused):
            check(checker, filter="cty = 'Bern'")


def test_a_pattern_with_too_many_states_is_refused():
    parts = " & ".join(f"x{number}:a" for number in range(12))
    with pytest.raises(SubscriptionRefused):
        check(CHECKER, pattern=f"a = kind = 'a'\n{parts}")


def nest(levels, word):
    text = "a = 1"
    for level in range(levels):
        text = f"{word}(x{level} = 1 or y = 2 and {text})"
    return text


def test_a_pattern_that_could_not_be_read_back_from_its_json_is_refused():
    for levels, is_fine in ((50, True), (51, False)):  # a hundred levels of the tree, and two more
        text = f"a = {nest(levels, '')}\nb = kind = 'b'\na ; b"
        if is_fine:
            assert check(CHECKER, pattern=text).text == text
        else:
            with pytest.raises(SubscriptionRefused, match="more than 100 levels"):
                check(CHECKER, pattern=text)


def test_records_in_records_are_looked_into_a_few_levels_deep():
    for levels, is_fine in ((5, True), (6, False), (30, False)):
        text = nest(levels, "not items has ")
        for members in ({"filter": text}, {"pattern": f"a = {text}\na ; a"}):
            if is_fine:
                assert check(CHECKER, **members).text in members.values()
            else:
                with pytest.raises(SubscriptionRefused, match="stands in `has` more than 5 levels"):
                    check(CHECKER, **members)


def test_a_forecast_is_active_when_the_model_knows_its_pattern(tmp_path):
    path = tmp_path / "patterns.model"
    checker = SubscriptionChecker(Vocabulary(), model=path)
    forecast = {"pattern": PATTERN, "horizon": "5 own events"}
    assert check(checker, **forecast).status == "learning"
    detector = td.Detector()
    detector.add("any name", PATTERN)
    events = [{"id": n, "time": n, "kind": "ab"[n % 2]} for n in range(20)]
    td.train(detector, events).save(path)
    assert check(checker, **forecast).status == "active"
    assert check(checker, **forecast | {"mode": "any"}).status == "learning"
    assert checker.check({"id": "s", **forecast}, now=NOW, only="x = 1").status == "learning"
    detector.add("bounded", "a = kind = 'a' and x = 1\nb = kind = 'b' and x = 1\na ; b within 5 min")
    td.train(detector, events).save(path)
    for only in (None, "x = 1"):
        assert checker.check({"id": "s", **forecast}, now=NOW, only=only).status == "active"
    path.write_bytes(b"no model")
    assert check(checker, **forecast).status == "learning"
    assert PatternModel(None).read() is None


def test_a_checker_goes_to_other_processes():
    checker = pickle.loads(pickle.dumps(SubscriptionChecker(Vocabulary(schema=SCHEMA), filter_bytes=20)))
    assert check(checker, filter="price < 9000").id == "s1"
    with pytest.raises(SubscriptionRefused):
        check(checker, filter="price < 9000 and city = 'Bern'")


def test_bytes_are_counted_not_characters():
    checker = SubscriptionChecker(Vocabulary(), filter_bytes=12)
    assert check(checker, filter="city = 'abc'").text
    with pytest.raises(SubscriptionRefused):
        check(checker, filter="city = 'äbc'")


def test_expiry_in_the_past_is_for_imports_alone():
    past = {"id": "s1", "filter": "a = 1", "expires_at": "2029-01-01T00:00:00Z"}
    with pytest.raises(SubscriptionRefused):
        CHECKER.check(past, now=NOW)
    assert CHECKER.check(past, now=NOW, takes_expired=True).status == "expired"
    assert CHECKER.check(past | {"status": "expired"}, now=NOW, takes_expired=True).status == "expired"
    with pytest.raises(SubscriptionRefused, match="`active` or `paused`"):
        CHECKER.check({"id": "s1", "filter": "a = 1", "status": "expired"}, now=NOW, takes_expired=True)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-31T08:00:00Z", datetime(2030, 1, 31, 8, tzinfo=UTC)),
        ("2030-01-31T08:00:00+02:00", datetime(2030, 1, 31, 6, tzinfo=UTC)),
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("9999-12-31T23:59:59-12:00", None),
        ("soon", None),
        ("2030-13-01", None),
        ("2030-01-31T08:00:00Z" + " " * 100, None),
    ],
)
def test_moments_are_times_in_utc(text, moment):
    assert parse_moment(text) == moment


def test_long_filters_and_patterns_are_not_for_the_event_loop():
    assert CHECKER.is_quick({"filter": "a = 1"})
    assert CHECKER.is_quick({})
    assert CHECKER.is_quick([])
    assert not CHECKER.is_quick({"filter": "a = 1 and " * 100})
    assert not CHECKER.is_quick({"filter": {"attr": "a", "op": "exists"}})
    assert not CHECKER.is_quick({"pattern": PATTERN})
