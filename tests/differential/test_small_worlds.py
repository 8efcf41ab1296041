"""Where the world is small enough, everything is tried: the law against the second opinion, without luck."""

from itertools import product

import pytest
from naive import evaluate_naively

import tidings as td
from tidings.model import Compare, Comparison, Is, Kind, Quantifier, Range, Test, TextOp, TextTest
from tidings.testing.strategies import Slot, World
from tidings.testing.strategies.values import AWKWARD, EXPRESSIONS, TEXTS

NUMBERS = World({"a": Slot(Kind.NUMBER), "b": Slot(Kind.NUMBER)})
WORDS = World({"a": Slot(Kind.TEXT)})

ENDS = [pair for pair in product((None, 0, 1, 2), repeat=2) if None in pair or pair[0] <= pair[1]]
SPANS = [Range(low, high, *opened) for low, high in ENDS for opened in product((False, True), repeat=2)]
FILLED = [span for span in SPANS if span.low is None or span.low != span.high or not (span.low_open or span.high_open)]
VALUES = [0, 0.5, 1, 2, *dict.fromkeys(FILLED)]


def assert_they_agree(tree, event, world):
    assert td.evaluate(tree, event) == evaluate_naively(tree, event, world), (td.render(tree), event)


@pytest.mark.parametrize("quantifier", Quantifier)
def test_every_range_meets_what_it_should(quantifier):
    conditions = [span for span in dict.fromkeys(SPANS) if span.kind] + [Is(0), Is(1)]
    for condition, value in product(conditions, VALUES):
        assert_they_agree(Test("a", condition, quantifier), {"a": value}, NUMBERS)


@pytest.mark.parametrize("quantifier", Quantifier)
def test_several_values_are_counted_right(quantifier):
    for condition, values in product((Is(1), Range(1, 2), Range(1, 1, True)), product((0, 1, 2), repeat=2)):
        assert_they_agree(Test("a", condition, quantifier), {"a": list(values)}, NUMBERS)


@pytest.mark.parametrize("op", Comparison)
def test_every_value_compares_as_it_should(op):
    for left, right in product(VALUES, VALUES):
        assert_they_agree(Test("a", Compare(op, "b")), {"a": left, "b": right}, NUMBERS)


@pytest.mark.parametrize("op", [op for op in TextOp if op is not TextOp.MATCHES])
def test_every_word_is_tested_as_it_should(op):
    words = (*TEXTS, "strasse", "ẞ", "SS", "FI", "i̇", "a*b", "\\*", "ss")
    patterns = (*words, *AWKWARD, "f*", "?o*s", "*", "??", "a?b", "s*")
    for pattern, ignoring_case, word in product(patterns, (False, True), words):
        assert_they_agree(Test("a", TextTest(op, pattern, ignoring_case)), {"a": word}, WORDS)


def test_every_expression_finds_what_it_should():
    words = (*TEXTS, *AWKWARD, "foo", "fofo", "5", "axb", "abc")
    for pattern, ignoring_case, word in product(EXPRESSIONS, (False, True), words):
        if word.isascii() or not ignoring_case:  # beyond ASCII, RE2 and Python fold case differently
            assert_they_agree(Test("a", TextTest(TextOp.MATCHES, pattern, ignoring_case)), {"a": word}, WORDS)


def test_text_compares_by_code_point():
    words = ("", "a", "A", "b", "ab", "é", "e\u0301", "Z", "\uffff", "\U00010000", "𝒳", "z")
    for low, high, word in product(words, words, words):
        if low <= high:
            assert_they_agree(Test("a", Range(low, high, high_open=True)), {"a": word}, WORDS)
