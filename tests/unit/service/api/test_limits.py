"""Limits: bodies by size, pace and depth, owners by a bucket that fills with time."""

import asyncio
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.service.api import limits
from tidings.service.api.limits import BodyLimits, BodyStopped, RateLimiter, decode_json, limit_body
from tidings.service.api.problems import Problem
from tidings.service.events.event_checks import is_deeper


def read(pieces, *, length=None, **bounds):
    """Return how many bytes of a body come through; a number among the pieces is a silence of so many seconds."""
    waiting = list(pieces)

    async def receive():
        while isinstance(waiting[0], float):
            await asyncio.sleep(waiting.pop(0))
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def run():
        receive_limited = limit_body(receive, length, BodyLimits(**{"size": 100} | bounds))
        total, more = 0, True
        while more:
            message = await receive_limited()
            total, more = total + len(message["body"]), message["more_body"]
        return total

    return asyncio.run(run())


def test_a_body_of_the_limit_passes_and_one_byte_more_does_not():
    assert read([b"x" * 60, b"x" * 40]) == 100
    with pytest.raises(BodyStopped) as stop:
        read([b"x" * 60, b"x" * 41])
    assert stop.value.status == 413


@pytest.mark.parametrize("length", ["101", "-1", "x", "1e3", "9" * 30])
def test_a_length_that_is_too_much_is_enough(length):
    with pytest.raises(BodyStopped):
        read([b""], length=length)


def test_a_piece_that_does_not_come_ends_the_wait():
    with pytest.raises(BodyStopped) as stop:
        read([b"x", 10.0, b"x"], piece_seconds=0.01)
    assert stop.value.status == 408


def test_many_small_pieces_end_with_the_bodys_time():
    with pytest.raises(BodyStopped):
        read([piece for _ in range(1_000) for piece in (b"", 0.01)] + [b""], seconds=0.05)


def test_a_stream_must_keep_its_pace(monkeypatch):
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.05)
    trickle = [piece for _ in range(1_000) for piece in (b"x", 0.01)] + [b""]
    with pytest.raises(BodyStopped):
        read(trickle, seconds=None, least_rate=1_000.0)
    assert read([*trickle[:20], b""], seconds=None, least_rate=1.0) == 10


# JSON ---------------------------------------------------------------------------------------------------


def measure_depth(value):
    if isinstance(value, dict | list):
        return 1 + max(map(measure_depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=3), parts, max_size=3),
)


@examples(200)
@given(value=JSON, depth=st.integers(0, 6))
def test_depth_is_that_of_the_definition(value, depth):
    assert is_deeper(value, depth) == (measure_depth(value) > depth)


@examples(100)
@given(value=JSON, depth=st.integers(1, 6))
def test_what_is_decoded_is_what_was_written(value, depth):
    data = json.dumps(value).encode()
    if measure_depth(value) > depth:
        with pytest.raises(Problem):
            decode_json(data, depth)
    else:
        assert decode_json(data, depth) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "empty"), (b"  ", "empty"), (b"\xff", "byte 0"), (b'{"a": \xc3\x28}', "byte 6"), (b'{\n "a" 1}', "line 2")],
)
def test_what_is_no_json_is_described(data, words):
    with pytest.raises(Problem, match=words) as problem:
        decode_json(data, 10)
    assert problem.value.status == 400


# Rates --------------------------------------------------------------------------------------------------


@examples(100)
@given(steps=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 15)), max_size=60), rate=st.floats(0.5, 10))
def test_over_any_time_an_owner_gets_the_rate_and_one_bucket(steps, rate):
    time, grants, burst = [0.0], [], 2.0
    limiter = RateLimiter("things", lambda: time[0], burst=burst)
    for wait, count in steps:
        time[0] += wait
        with suppress(Problem):
            limiter.take("bob", rate, count)
            grants.append((time[0], count))
    most = max([1.0, rate * burst, *(count for _, count in grants)])
    for begin, (start, _) in enumerate(grants):
        for end in range(begin, len(grants)):
            elapsed = grants[end][0] - start
            # What is granted at the end may leave a debt, which the next pays.
            assert sum(count for _, count in grants[begin:end]) <= max(1.0, rate * burst) + rate * elapsed + most + 1e-6


def test_after_the_time_that_was_named_it_works():
    time = [0.0]
    limiter = RateLimiter("things", lambda: time[0])
    limiter.take("bob", 2.0, 4)
    with pytest.raises(Problem) as problem:
        limiter.take("bob", 2.0, 3)
    time[0] += int(problem.value.headers["Retry-After"])
    limiter.take("bob", 2.0, 3)


def test_a_batch_that_is_larger_than_the_bucket_passes_when_it_is_full():
    time = [0.0]
    limiter = RateLimiter("events", lambda: time[0])
    limiter.take("bob", 10.0, 500)
    with pytest.raises(Problem):
        limiter.take("bob", 10.0, 1)
    time[0] += 60
    limiter.take("bob", 10.0, 1)


def test_owners_have_buckets_of_their_own_and_no_more_than_fit(monkeypatch):
    monkeypatch.setattr(limits, "MAX_OWNERS", 3)
    limiter = RateLimiter("things", lambda: 0.0)
    for number in range(10):
        limiter.take(f"owner{number}", 1.0, 2)
    with pytest.raises(Problem):
        limiter.take("owner9", 1.0)


def test_a_rate_of_nothing_lets_one_through():
    limiter = RateLimiter("things", lambda: 0.0)
    limiter.take("bob", 0.0)
    with pytest.raises(Problem):
        limiter.take("bob", 0.0)
