"""Patterns of text: whether all texts of one are of the other, or none, against all short texts."""

from itertools import product

import pytest

from tidings.algebra.covering.globs import excludes, includes, to_glob
from tidings.model import TextOp, TextTest
from tidings.model.text_tests import compile_text_test

WORDS = ["".join(word) for size in range(6) for word in product("abc", repeat=size)]
TEXTS = ["", "a", "b", "ab", "ba", "aa"]
PATTERNS = [TextTest(op, text) for op in (TextOp.STARTS_WITH, TextOp.ENDS_WITH, TextOp.CONTAINS) for text in TEXTS]
PATTERNS += [TextTest(TextOp.LIKE, text) for text in ["a", "ab", "?", "a?", "a*b", "*a*b*", "?a*", "a?b", "**", "?*"]]


@pytest.fixture(scope="module")
def words_of():
    return {test: frozenset(filter(compile_text_test(test), WORDS)) for test in PATTERNS}


def test_inclusion_is_told_exactly(words_of):
    for wide, narrow in product(PATTERNS, repeat=2):
        verdict = includes(to_glob(wide), to_glob(narrow))
        assert verdict is (words_of[wide] >= words_of[narrow]), (wide, narrow)


def test_having_nothing_in_common_is_told_exactly(words_of):
    for first, second in product(PATTERNS, repeat=2):
        assert excludes(to_glob(first), to_glob(second)) is (not words_of[first] & words_of[second]), (first, second)


def test_a_backslash_makes_a_wildcard_plain():
    starred = to_glob(TextTest(TextOp.LIKE, r"a\*"))
    assert starred.split_at_stars == (False, "a*", False)
    assert to_glob(TextTest(TextOp.LIKE, "a\\")).split_at_stars == (False, "a\\", False)
    assert to_glob(TextTest(TextOp.LIKE, "a*")).split_at_stars == (False, "a", True)


def test_folded_patterns_widen_what_they_are_compared_with():
    folded = to_glob(TextTest(TextOp.CONTAINS, "SS", ignoring_case=True))
    assert includes(folded, to_glob(TextTest(TextOp.STARTS_WITH, "straße")))
    assert not includes(folded, to_glob(TextTest(TextOp.LIKE, "?s")))
    assert not includes(to_glob(TextTest(TextOp.CONTAINS, "ss")), folded)
    assert excludes(folded, to_glob(TextTest(TextOp.LIKE, "abc")))
    assert not excludes(folded, to_glob(TextTest(TextOp.LIKE, "?")))


def test_an_expression_is_a_pattern_only_when_it_is_plain_text():
    assert to_glob(TextTest(TextOp.MATCHES, "abc")) == to_glob(TextTest(TextOp.CONTAINS, "abc"))
    assert to_glob(TextTest(TextOp.MATCHES, "a.c")) is None
    assert to_glob(TextTest(TextOp.MATCHES, "abc", ignoring_case=True)) is None


def test_very_long_patterns_are_given_up_without_a_word():
    long = to_glob(TextTest(TextOp.LIKE, "*a?" * 400))
    longer = to_glob(TextTest(TextOp.LIKE, "*b?a" * 400))
    assert not includes(long, longer)
    assert not excludes(long, longer)
