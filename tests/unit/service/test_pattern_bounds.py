"""What a stored pattern may be: all that people write, and nothing that compiles for long."""

from itertools import combinations
from pathlib import Path

import pytest
from tests.corpus.test_pattern_corpus import CASES, write_filters

from tidings.concepts import Vocabulary
from tidings.errors import TidingsError
from tidings.lang import read_patterns, render_pattern
from tidings.service.checking import MODES, SubscriptionChecker
from tidings.service.pattern_bounds import MOST_BYTES, MOST_STEPS

CHECKER = SubscriptionChecker(Vocabulary())
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.patterns"))


def define(count, text):
    """Return a pattern of so many named filters."""
    return "".join(f"f{number} = kind = '{number}'\n" for number in range(count)) + text


def join(word, count, first=0):
    return word.join(f"f{number}" for number in range(first, first + count))


def limit_times(count):
    return " and ".join(f"t(f{late}) - t(f{early}) < 5 min" for early, late in combinations(range(count), 2))


def test_every_pattern_of_the_corpus_is_taken():
    texts = {(write_filters(case, text), mode) for case in CASES for _, text, mode in case["patterns"]}
    assert len(texts) > 20
    for text, mode in texts:
        CHECKER.check_text("pattern", text, "text", mode)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_pattern_of_the_examples_is_taken_in_each_mode(path):
    patterns = read_patterns(path.read_text())
    assert patterns
    for written in patterns:
        for mode in MODES:
            CHECKER.check_text("pattern", render_pattern(written.pattern, "json"), "json", mode)


@pytest.mark.parametrize(
    "text",
    [
        define(MOST_STEPS, join(" ; ", MOST_STEPS) + " within 1 h"),
        define(MOST_STEPS, join(" or ", MOST_STEPS)),
        define(8, join(" and ", 8)),
        define(10, f"({join(' ; ', 10)}) @ ({limit_times(10)})"),
        define(2, "f0{1000} ; f1"),
    ],
    ids=["sequence", "or", "and", "times", "repetition"],
)
def test_large_ones_are_taken(text):
    assert CHECKER.check_text("pattern", text, "text").text == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (define(MOST_STEPS + 1, join(" ; ", MOST_STEPS + 1)), "201 steps, more than 200.*; make several patterns"),
        (define(9, join(" and ", 9)), "9 steps; use fewer operands of `and`"),
        (define(40, f"({join(' ; ', 40)}) @ ({limit_times(40)})"), "40 steps and 780 time conditions; use fewer"),
        (define(2, "f0{1025} ; f1"), "more than 1,024 configurations; use .* shorter repetitions"),
        (define(1, "f0 ; f0" + " " * MOST_BYTES), "more than 50,000 bytes, which is the limit; make several patterns"),
    ],
    ids=["steps", "and", "times", "repetition", "bytes"],
)
def test_what_is_too_much_is_refused_with_what_it_is_and_the_way_out(text, words):
    with pytest.raises(TidingsError, match=words):
        CHECKER.check_text("pattern", text, "text")
