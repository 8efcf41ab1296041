"""Patterns of text: whether all texts of one are of the other, or none, against all short texts."""

from itertools import product

import pytest

from tidings.algebra.covering.globs import excludes, glob_of, includes
from tidings.model import TextOp, TextTest
from tidings.model.text_tests import text_test

WORDS = ["".join(word) for size in range(6) for word in product("abc", repeat=size)]
TEXTS = ["", "a", "b", "ab", "ba", "aa"]
PATTERNS = [TextTest(op, text) for op in (TextOp.STARTS_WITH, TextOp.ENDS_WITH, TextOp.CONTAINS) for text in TEXTS]
PATTERNS += [TextTest(TextOp.LIKE, text) for text in ["a", "ab", "?", "a?", "a*b", "*a*b*", "?a*", "a?b", "**", "?*"]]


@pytest.fixture(scope="module")
def accepted():
    return {test: frozenset(filter(text_test(test), WORDS)) for test in PATTERNS}


def test_inclusion_is_told_exactly(accepted):
    for wide, narrow in product(PATTERNS, repeat=2):
        told = includes(glob_of(wide), glob_of(narrow))
        assert told is (accepted[wide] >= accepted[narrow]), (wide, narrow)


def test_having_nothing_in_common_is_told_exactly(accepted):
    for one, two in product(PATTERNS, repeat=2):
        assert excludes(glob_of(one), glob_of(two)) is (not accepted[one] & accepted[two]), (one, two)


def test_a_backslash_makes_a_wildcard_plain():
    starred = glob_of(TextTest(TextOp.LIKE, r"a\*"))
    assert starred.literal == "a*"
    assert glob_of(TextTest(TextOp.LIKE, "a\\")).literal == "a\\"
    assert glob_of(TextTest(TextOp.LIKE, "a*")).prefix == "a"


def test_folded_patterns_widen_what_they_are_compared_with():
    folded = glob_of(TextTest(TextOp.CONTAINS, "SS", ignoring_case=True))
    assert includes(folded, glob_of(TextTest(TextOp.STARTS_WITH, "straße")))
    assert not includes(folded, glob_of(TextTest(TextOp.LIKE, "?s")))
    assert not includes(glob_of(TextTest(TextOp.CONTAINS, "ss")), folded)
    assert excludes(folded, glob_of(TextTest(TextOp.LIKE, "abc")))
    assert not excludes(folded, glob_of(TextTest(TextOp.LIKE, "?")))


def test_an_expression_is_a_pattern_only_when_it_is_plain_text():
    assert glob_of(TextTest(TextOp.MATCHES, "abc")) == glob_of(TextTest(TextOp.CONTAINS, "abc"))
    assert glob_of(TextTest(TextOp.MATCHES, "a.c")) is None
    assert glob_of(TextTest(TextOp.MATCHES, "abc", ignoring_case=True)) is None


def test_very_long_patterns_are_given_up_without_a_word():
    long = glob_of(TextTest(TextOp.LIKE, "*a?" * 400))
    longer = glob_of(TextTest(TextOp.LIKE, "*b?a" * 400))
    assert not includes(long, longer)
    assert not excludes(long, longer)
