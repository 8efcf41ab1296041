"""Cursors: what was written is read, and nothing else is."""

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tidings.service.api.cursors import _compute_checksum, read_cursor, write_cursor
from tidings.service.api.problems import Problem

PRINTABLE = st.text(st.characters(codec="utf-8").filter(str.isprintable), max_size=20)
PLACES = st.lists(PRINTABLE | st.integers(0, 2**53), max_size=3)


@examples(100)
@given(subject=st.text(max_size=10), place=PLACES)
def test_a_cursor_is_read_as_it_was_written(subject, place):
    assert read_cursor(subject, write_cursor(subject, place), tuple(map(type, place))) == place


@examples(100)
@given(subject=st.text(max_size=10), other=st.text(max_size=10), place=PLACES)
def test_a_cursor_is_of_one_subject(subject, other, place):
    if subject != other:
        with pytest.raises(Problem):
            read_cursor(other, write_cursor(subject, place), tuple(map(type, place)))


@examples(300)
@given(text=st.text(max_size=60))
def test_no_text_is_a_cursor(text):
    with pytest.raises(Problem) as problem:
        read_cursor("list", text, (str,))
    assert problem.value.status == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5) | st.integers(-(2**63), 2**64 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def forge(subject, data):
    """Return a cursor whose checksum is right, of any bytes."""
    return base64.urlsafe_b64encode(_compute_checksum(subject, data) + data).decode().rstrip("=")


@examples(300)
@given(value=JSON, kinds=st.sampled_from([(int,), (str, str), (str,), ()]))
def test_a_forged_cursor_is_refused_unless_it_has_a_place_of_the_list(value, kinds):
    cursor = forge("list", orjson.dumps(value))
    if isinstance(value, list) and tuple(map(type, value)) == kinds and _can_be_asked(value):
        assert read_cursor("list", cursor, kinds) == value
        return
    with pytest.raises(Problem) as problem:
        read_cursor("list", cursor, kinds)
    assert problem.value.status == 400


def _can_be_asked(place):
    return all(part.isprintable() if isinstance(part, str) else 0 <= part < 2**63 for part in place)


@examples(100)
@given(data=st.binary(max_size=30))
def test_a_forged_cursor_of_any_bytes_is_refused(data):
    with pytest.raises(Problem):
        read_cursor("list", forge("list", data), (str, str))


@pytest.mark.parametrize(
    "data", [b"[" * 300 + b"]" * 300, b"[1e400]", b'["\\ud800"]', b"[%d]" % 10**25, b"[true]", b"[-1]"]
)
def test_a_forged_cursor_that_is_hard_to_read_is_refused(data):
    with pytest.raises(Problem):
        read_cursor("list", forge("list", data), (int,))
