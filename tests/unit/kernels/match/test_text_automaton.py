"""The scan against a search for each literal, and wildcard programs against `re`; compiled and as plain Python."""

import os
import re
import subprocess
import sys
from itertools import accumulate

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.kernels.match import text_automaton as kernel

letters = st.text("abé", max_size=4).map(str.encode)
texts = st.lists(st.tuples(st.text("abé", max_size=12), st.text("abé", max_size=12)), max_size=5)
ends = st.sampled_from([b"", bytes([kernel.BEGIN])]), st.sampled_from([b"", bytes([kernel.END])])
literals = st.tuples(st.booleans(), st.builds(lambda begin, run, end: begin + run + end, ends[0], letters, ends[1]))
steps = st.lists(st.sampled_from(["a", "b", "é", "?", "*"]), max_size=8)


def pack_texts(parts):
    starts = np.array(list(accumulate(map(len, parts), initial=0)), np.int64)
    return starts, np.frombuffer(b"".join(parts), np.uint8)


def program_of(pattern):
    written = {"?": bytes([kernel.ONE]), "*": bytes([kernel.MANY])}
    return np.frombuffer(b"".join(written.get(step, step.encode()) for step in pattern), np.uint8)


def scan_text(keys, pairs, programs=None, doubtful=None):
    """Scan for sorted distinct literals, one pattern each."""
    starts, data = pack_texts([literal for _, literal in keys])
    nodes = kernel.build_tries(data, starts, sum(not folded for folded, _ in keys))
    shorter = np.full(len(keys) + 1, -1, np.int32)
    dense = kernel.link_failures(nodes, shorter)
    ids = np.arange(len(keys) + 1, dtype=np.int32)
    bounds, text = pack_texts([side.encode() for pair in pairs for side in pair])
    stamps = np.zeros(len(keys) + 1, np.int32)
    program_starts, program_bytes = pack_texts(programs or [b""] * len(keys))
    doubtful = np.array(doubtful or [0] * len(keys), np.uint8)
    literals = np.stack([ids, shorter], axis=1)
    tables = nodes, dense, literals, ids[:-1], ids[:-1], doubtful, program_starts, program_bytes
    for table in tables:
        table.flags.writeable = False  # as the engine passes them, so that one compiled kernel serves both
    return kernel.scan(text, bounds, stamps, 1, tables)


@given(st.sets(literals, max_size=12).map(sorted), texts)
@example([(False, b""), (True, b"")], [("", "")])
@example([(False, bytes([kernel.BEGIN, kernel.END]))], [("", "a"), ("a", "")])
def test_the_literals_found_are_those_that_occur(keys, pairs):
    starts, ids, maybe_texts, maybe_ids = scan_text(keys, pairs)
    for at, pair in enumerate(pairs):
        whole = [bytes([kernel.BEGIN]) + side.encode() + bytes([kernel.END]) for side in pair]
        expected = [place for place, (folded, literal) in enumerate(keys) if literal in whole[folded]]
        assert ids[starts[at] : starts[at + 1]].tolist() == expected
    assert len(starts) == len(pairs) + 1
    assert len(maybe_texts) == len(maybe_ids) == 0


@given(steps, st.text("abé", max_size=12))
@example([], "")
@example(["*", "é"], "éa")
@example(["?"], "é")
def test_a_program_fits_as_the_expression_does(pattern, text):
    program, data = program_of(pattern), np.frombuffer(text.encode(), np.uint8)
    expression = "".join({"?": ".", "*": ".*"}.get(step, step) for step in pattern)
    expected = re.fullmatch(expression, text, re.DOTALL) is not None
    # The program and the text lie in the middle of others.
    around = np.frombuffer(b"a\xf9b", np.uint8)
    program, data = (np.concatenate([around, part, around]) for part in (program, data))
    assert kernel.fits(program, 3, len(program) - 3, data, 3, len(data) - 3) == expected


def test_more_hits_than_there_is_room_for_are_all_returned():
    keys = sorted((False, b"a" * length) for length in range(1, 200))
    starts, ids, *_ = scan_text(keys, [("a" * 300, ""), ("aaa", "")])
    assert ids.tolist() == [*range(199), 0, 1, 2]
    assert starts.tolist() == [0, 199, 202]
    *_, maybe_texts, maybe_ids = scan_text(keys, [("a" * 300, ""), ("aaa", "")], doubtful=[1] * 199)
    assert sorted(zip(maybe_texts.tolist(), maybe_ids.tolist(), strict=True)) == [
        *((0, id) for id in range(199)),
        *((1, id) for id in range(3)),
    ]


def test_a_literal_alone_is_not_enough_where_there_is_a_program():
    program = bytes(program_of(["*", "a", "?", "b", "*"]))
    starts, *_ = scan_text([(False, b"a")], [("ab", ""), ("aéb", ""), ("éab", "")], [program])
    assert starts.tolist() == [0, 0, 1, 1]


def test_the_kernels_run_without_the_compiler():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return  # this is that run
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
