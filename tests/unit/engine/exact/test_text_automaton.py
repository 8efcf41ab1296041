"""The automaton against the law, `model.text`, pattern by pattern."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from tidings.engine.exact.text_automaton import TextAutomaton
from tidings.engine.exact.text_automaton.program import compile_programs, is_folded_alike
from tidings.model.text_tests import TextOp, TextTest, compile_text_test

PLAIN = [
    "a",
    "b",
    "ab",
    "abc",
    "K",
    "\u212a",
    "s",
    "ſ",
    "S",
    "ß",
    "ẞ",
    "ss",
    "İ",
    "i",
    "é",
    "É",
    "ж",
    "Ж",
    "😀",
    "\n",
    ".",
]
REPEATED = ["*", "+", "?", "*?", "??", "{2}", "{0}", "{1,}", "{,2}", "{", "}"]
GROUPED = [
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?s)",
    "(?-s)",
    "(?m)",
    "(?P<n>",
    "[",
    "]",
    "[^",
    "[[:alpha:]]",
    "|",
    "-",
    ":",
]
ESCAPED = [
    "\\A",
    "\\z",
    "\\b",
    "\\B",
    "\\d",
    "\\w",
    "\\.",
    "\\n",
    "\\Q",
    "\\E",
    "\\x61",
    "\\pL",
    "\\C",
    "\\\\",
    "\\",
    "\\]",
]
SPECIAL = [".", ".*", ".+", "^", "$", "1", *REPEATED, *GROUPED, *ESCAPED]

texts = st.lists(st.sampled_from([*PLAIN, "1", "{", "]", "\\", " "]), max_size=8).map("".join)
wildcards = st.lists(st.sampled_from([*PLAIN, "*", "*", "?", "\\"]), max_size=6).map("".join)
expression_texts = st.lists(st.sampled_from([*PLAIN, *SPECIAL]), max_size=7).map("".join)


def is_accepted(pattern):
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return False
    return True


tests = st.one_of(
    st.builds(TextTest, st.sampled_from([op for op in TextOp if op is not TextOp.MATCHES]), wildcards, st.booleans()),
    st.builds(TextTest, st.just(TextOp.MATCHES), expression_texts.filter(is_accepted), st.booleans()),
)


def evaluate_by_law(patterns, text):
    return [id for id, test in enumerate(patterns) if compile_text_test(test)(text)]


def split(starts, ids):
    return [ids[low:high].tolist() for low, high in pairwise(starts)]


@given(st.lists(tests, max_size=20), st.lists(texts, max_size=6))
def test_the_ids_found_are_those_whose_tests_accept(patterns, several):
    automaton = TextAutomaton.build(patterns)
    starts, ids = automaton.find_many(several)
    assert (starts.dtype, ids.dtype) == (np.int64, np.int32)
    assert split(starts, ids) == [evaluate_by_law(patterns, text) for text in several]
    assert [automaton.find(text).tolist() for text in several] == split(starts, ids)


@given(st.lists(tests, max_size=10), st.lists(texts, max_size=3))
def test_arrays_carry_everything(patterns, several):
    built = TextAutomaton.build(patterns)
    opened = TextAutomaton({name: array.copy() for name, array in built.to_arrays().items()})
    assert split(*opened.find_many(several)) == split(*built.find_many(several))
    assert opened.tests == built.tests == tuple(patterns)
    assert opened.describe() == built.describe()


ODD = [
    "",
    "a|",
    "ab|bc",
    "abc|abd|[xy]",
    "^abc|abc$",
    "^$",
    "^",
    "a^b",
    "a$b",
    "$^",
    "^^abc$$",
    "(?:^)*abc",
    "abc+",
    "abc*",
    "abc?d",
    "abc{2}",
    "abc{0}",
    "abc{0,2}d",
    "abc{",
    "abc{,2}",
    "a.c",
    "a.*c",
    "a.+?c",
    "^a.c$",
    "(abc)?d",
    "(a|b)cab",
    "(?P<name>abc)def",
    "(?i)abc",
    "(?i)ABC|ß",
    "ab(?i)c",
    "(?i:ab)c",
    "(?-s)a.c",
    "(?m)^abc$",
    "(?s)a.c",
    "[[:alpha:]]abc",
    "[]abc]abc",
    "[^]abc]abc",
    "[a\\]bc]abc",
    "([)])abc",
    "(\\))abc",
    "\\Qa*c\\Eabc",
    "\\x61bc",
    "a\\.c",
    "a\\\\c",
    "abc\\b",
    "\\babc\\z",
    "\\Aabc",
    "a\nc",
    "a\\nc",
    "abc]",
    "straße",
    "ǅabc",
    "каб",
]
TEXTS = [
    *["", "a", "abc", "ABC", "abcabc", "xabcx", "abd", "bc", "abbc", "abcc", "abcd", "abd", "d", "cab", "acab", "a\nc"],
    *[
        "\nabc\n",
        "x\nabc",
        "a.c",
        "a\\c",
        "a*cabc",
        "abc]",
        "abc{",
        "abc{,2}",
        ")abc",
        "]abc",
        "STRASSE",
        "STRAẞE",
        "straße",
    ],
    *["ß", "ss", "ǅabc", "ǆabc", "КАБ", "abcdef", "a b", "aéc", "a😀c", "A\u212aC"],
]


@pytest.mark.parametrize("ignoring_case", [False, True])
def test_odd_expressions_mean_what_re2_says(ignoring_case):
    patterns = [TextTest(TextOp.MATCHES, expression, ignoring_case) for expression in ODD]
    automaton = TextAutomaton.build(patterns)
    for text in TEXTS:
        assert automaton.find(text).tolist() == evaluate_by_law(patterns, text), text


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("abc", [[b"abc"]]),
        ("^abc.*de$", [[b"\xffabc", b"de\xfe"]]),
        (r"error \d+ in [a-z]+\.py", [[b"error ", b" in ", b".py"]]),
        ("colou?r", [[b"colo", b"r"]]),
        ("fo+d", [[b"fo", b"d"]]),
        ("(ford|opel) focus", [[b" focus"]]),
        ("ford|opel", [[b"ford"], [b"opel"]]),
        ("(?i)Straße", [[b"strasse"]]),
        ("(?m)^abc", [[]]),
    ],
)
def test_expressions_require_their_plain_runs(expression, runs):
    assert [program.list_runs() for program in compile_programs(TextTest(TextOp.MATCHES, expression))] == runs


def test_every_character_that_re2_folds_to_a_listed_one_is_case_folded_to_it_too():
    listed = [char for char in map(chr, range(0x600)) if is_folded_alike(char)]
    everything = "".join(char for char in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= char <= "\udfff")
    options = re2.Options()
    options.case_sensitive = False
    alike = "".join(re2.compile(f"[{re2.escape(''.join(listed))}]+", options).findall(everything))
    assert len(alike) > len(listed)
    for char in listed:
        characters = re2.compile(re2.escape(char), options).findall(alike)
        assert {character.casefold() for character in characters} == {char.casefold()}


def test_what_needs_no_expression_is_counted_as_such():
    described = TextAutomaton.build(
        [
            TextTest(TextOp.CONTAINS, "ford"),
            TextTest(TextOp.CONTAINS, "FORD", ignoring_case=True),
            TextTest(TextOp.LIKE, "f*d"),
            TextTest(TextOp.MATCHES, "ford.*focus|^opel$"),
            TextTest(TextOp.MATCHES, r"ford \d+"),
            TextTest(TextOp.MATCHES, r"^\d+$"),
        ]
    ).describe()
    assert described["patterns"] == 6
    assert described["expressions with a literal"] == 1
    assert described["expressions without"] == 1


def test_more_loose_expressions_than_a_set_holds_are_all_searched_for():
    patterns = [
        TextTest(TextOp.MATCHES, f"[{chr(97 + at % 26)}]\\d{{{at // 26 + 1}}}", at % 2 == 0) for at in range(150)
    ]
    automaton = TextAutomaton.build(patterns)
    assert automaton.describe()["expressions without"] == 150
    for text in ["", "a1", "A1", "a12345 z123", "q"]:
        assert automaton.find(text).tolist() == evaluate_by_law(patterns, text)


@pytest.mark.parametrize("memory", [1, 40_000, 120_000])
def test_a_set_that_re2_finds_too_large_is_divided(memory):
    patterns = [TextTest(TextOp.MATCHES, f"[ab]{{{at}}}[^c]{{{at},40}}.[xy]") for at in range(1, 20)]
    automaton = TextAutomaton(TextAutomaton.build(patterns).to_arrays(), set_memory=memory)
    for text in ["", "ab", "abab" * 10 + "zzx", "b" * 60 + "y", "abzxabzyabzx"]:
        assert automaton.find(text).tolist() == evaluate_by_law(patterns, text)


def test_a_set_that_ran_out_of_memory_is_asked_one_by_one(monkeypatch):
    class Spent:
        SearchSet = classmethod(lambda cls, _: cls())
        Add = Compile = lambda *_: None
        Match = lambda *_: None  # noqa: E731 - what RE2 answers then

    monkeypatch.setattr(re2, "Set", Spent)
    automaton = TextAutomaton.build([TextTest(TextOp.MATCHES, "[ab]c"), TextTest(TextOp.MATCHES, "[xy]")])
    assert automaton.find("bc").tolist() == [0]


def test_runs_that_a_crowd_shares_are_passed_over_for_rarer_ones():
    patterns = [TextTest(TextOp.LIKE, f"https://example.org/*{at:03}*") for at in range(100)]
    automaton = TextAutomaton.build(patterns)
    assert automaton.describe()["literals"] == 100
    assert automaton.find("https://example.org/cars/017").tolist() == [17]


def test_arrays_mapped_from_files_serve_as_they_are(tmp_path):
    built = TextAutomaton.build(
        [TextTest(TextOp.CONTAINS, "ord"), TextTest(TextOp.LIKE, "f*d"), TextTest(TextOp.MATCHES, "[o]r")]
    )
    for name, array in built.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    opened = TextAutomaton({path.stem: np.load(path, mmap_mode="r") for path in tmp_path.iterdir()})
    assert opened.find("ford").tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(opened)).find("ford").tolist() == [0, 1, 2]


def test_stamps_start_over_before_they_run_out():
    arrays = TextAutomaton.build([TextTest(TextOp.CONTAINS, "a")]).to_arrays()
    automaton = TextAutomaton(arrays, first_stamp=np.iinfo(np.int32).max - 2)
    automaton.find("a")
    assert automaton.next_stamp == np.iinfo(np.int32).max - 1
    assert split(*automaton.find_many(["a", "b", "a"])) == [[0], [], [0]]
    assert automaton.next_stamp == 4
