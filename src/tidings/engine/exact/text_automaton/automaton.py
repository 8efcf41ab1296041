"""Which of many text tests a text satisfies, without trying each: literals first, candidates only after.

Each pattern (and each alternative of an expression) requires a literal, the longest plain run in it. All literals are
one Aho-Corasick automaton (`kernels.match.text_automaton`) that reads the text once, plain and case-folded. For
`contains` the literal is the answer; for `like` and simple expressions the kernel runs a wildcard program; for other
expressions that program only rejects, and RE2 decides. Expressions that require no literal worth looking for are
searched for in sets of a few dozen.

Everything is in flat arrays that can be mapped from a file; RE2's objects are made when they are first needed.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tidings.engine.arrays import freeze, list_owners, pack_bytes
from tidings.engine.exact.text_automaton.program import TextProgram, compile_programs
from tidings.kernels.match import text_automaton as kernel
from tidings.model.text_tests import TextOp, TextTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tidings.kernels.array_types import ByteArray, Int32Array, IntArray, NamedArrays

_OPS, _IGNORING_CASE = tuple(TextOp), 16
"""Snapshots store the place of a test's operator (`automaton.N.ops`), plus 16 where it ignores case: a new operator of
`TextOp` must be appended last."""

_CROWD = 64
"""A run that more patterns share than this is likely to be common in texts too; a shorter, rarer one is better."""

_WORTH_ASKING = 3
"""Shorter literals occur in so many texts that an expression is cheaper in a set than tried after each hit."""

RegexSource: TypeAlias = tuple[str, bool]
"""An expression, and whether it ignores case."""

ExpressionSet: TypeAlias = tuple[list[int], Any]
"""Ids, and RE2's set that searches for their expressions in one pass; None: there is none, and each is tried."""

SET_SIZE = 32
"""Expressions in a set. More would share a pass, but their common states multiply: for 900 expressions of six
shapes on random words, sets of 32, 128 and 1000 took 0.34, 0.50 and 1.28 ms a text."""

SET_MEMORY = 64 << 20
"""Bytes that RE2 may use for a set, for its program and its states; it takes them as they are needed."""

KEPT_EXPRESSIONS = 16384
"""Single expressions that stay compiled."""


class TextAutomaton:
    """All patterns at once; a test's id is its place among the tests. Immutable, safe for threads.

    >>> from tidings.model.text_tests import TextOp, TextTest
    >>> tests = [TextTest(TextOp.CONTAINS, "ord"), TextTest(TextOp.LIKE, "f*d"), TextTest(TextOp.MATCHES, "[xyz]")]
    >>> TextAutomaton.build(tests).find("ford").tolist()
    [0, 1]
    """

    def __init__(
        self, arrays: Mapping[str, NDArray[np.generic]], *, set_memory: int = SET_MEMORY, first_stamp: int = 1
    ) -> None:
        """Take the arrays of `to_arrays`, reading none; `first_stamp` begins the count of texts, which starts over."""
        self._arrays = {name: freeze(array) for name, array in arrays.items()}
        self._tables = tuple(self._arrays[name] for name in _TABLES)
        nodes = self._arrays["nodes"]
        # Whether case-folded text has anything to find: its root has a child, or the empty literal.
        self._folds = bool(nodes[1, 0] < nodes[2, 0] or nodes[1, 2] >= 0)
        self._expressions = Re2Expressions(self._decode_expression, self._arrays["loose"].tolist(), set_memory)
        self._has_loose = bool(len(self._arrays["loose"]))
        # Scratch arrays that no thread is using, each with its next stamp; popping from a list is atomic.
        # A literal seen in text `t` of a scan is stamped with the number of the text, so nothing is cleared between.
        self._idle: list[tuple[Int32Array, int]] = []
        self._first_stamp = first_stamp

    @classmethod
    def build(cls, tests: Sequence[TextTest]) -> TextAutomaton:
        """Return the automaton of these tests."""
        built = cls(_build_arrays(tests))
        built.__dict__["tests"] = tuple(tests)
        return built

    def to_arrays(self) -> NamedArrays:
        """Return all there is to the automaton, as flat arrays by name; some may be empty."""
        return dict(self._arrays)

    def __reduce__(self) -> tuple[object, ...]:
        return TextAutomaton, (self._arrays,)

    @property
    def next_stamp(self) -> int:
        """The stamp that the next text gets, if no other thread is searching."""
        return self._idle[-1][1] if self._idle else self._first_stamp

    def __len__(self) -> int:
        return len(self._arrays["ops"])

    @cached_property
    def tests(self) -> tuple[TextTest, ...]:
        """The tests, in the order of their ids."""
        codes = self._arrays["ops"].tolist()
        return tuple(
            TextTest(_OPS[code % _IGNORING_CASE], self._decode_pattern(id), code >= _IGNORING_CASE)
            for id, code in enumerate(codes)
        )

    def describe(self) -> dict[str, int]:
        """Return how many patterns, literals and states there are, and how many expressions ask RE2."""
        return {
            "patterns": len(self),
            "literals": len(self._arrays["literals"]) - 1,
            "states": len(self._arrays["nodes"]) - 1,
            "expressions with a literal": len(np.unique(self._arrays["owners"][self._arrays["doubtful"] != 0])),
            "expressions without": len(self._arrays["loose"]),
        }

    def find(self, text: str) -> Int32Array:
        """Return the ids of the tests that the text satisfies, ascending."""
        return self.find_many([text])[1]

    def find_many(self, texts: Sequence[str]) -> tuple[IntArray, Int32Array]:
        """Return `starts` and `ids`: text `i` satisfies the tests `ids[starts[i]:starts[i + 1]]`, ascending."""
        parts: list[bytes] = []
        for text in texts:
            parts.append(text.encode())
            parts.append(text.casefold().encode() if self._folds else b"")
        bounds = np.fromiter(accumulate(map(len, parts), initial=0), np.int64, len(parts) + 1)
        starts, ids, maybe_texts, maybe_ids = self._scan(np.frombuffer(b"".join(parts), np.uint8), bounds)
        candidates = dict.fromkeys(zip(maybe_texts.tolist(), maybe_ids.tolist(), strict=True))
        more = [(text, id) for text, id in candidates if self._expressions.accepts(id, parts[2 * text])]
        if self._has_loose:
            more += [
                (number, id) for number, text in enumerate(parts[::2]) for id in self._expressions.find_loose(text)
            ]
        return _merge_ids(starts, ids, more) if more else (starts, ids)

    def _scan(self, data: ByteArray, bounds: IntArray) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
        texts = len(bounds) // 2
        try:
            stamps, stamp = self._idle.pop()
        except IndexError:
            stamps, stamp = np.zeros(len(self._arrays["literals"]), np.int32), self._first_stamp
        if stamp + texts > np.iinfo(np.int32).max:
            stamps[:] = 0
            stamp = 1
        hits: tuple[IntArray, Int32Array, Int32Array, Int32Array]
        hits = kernel.scan(data, bounds, stamps, stamp, self._tables)
        self._idle.append((stamps, stamp + texts))
        return hits

    def _decode_pattern(self, id: int) -> str:
        starts = self._arrays["pattern_starts"]
        return self._arrays["patterns"][int(starts[id]) : int(starts[id + 1])].tobytes().decode()

    def _decode_expression(self, id: int) -> RegexSource:
        return self._decode_pattern(id), bool(int(self._arrays["ops"][id]) >= _IGNORING_CASE)


_TABLES = kernel.ScanTables._fields
"""The arrays that the scan takes, in its order."""


def _merge_ids(starts: IntArray, ids: Int32Array, more: list[tuple[int, int]]) -> tuple[IntArray, Int32Array]:
    """Return the scan's ids with those that RE2 found, in order; two alternatives may yield the same id."""
    added = np.array(more, np.int64)
    keys = np.unique(np.concatenate([list_owners(starts) << 32 | ids, added[:, 0] << 32 | added[:, 1]]))
    return np.searchsorted(keys, np.arange(len(starts)) << 32), (keys & 0xFFFF_FFFF).astype(np.int32)


def _build_arrays(tests: Sequence[TextTest]) -> NamedArrays:
    owners, programs, loose = _compile_tests(tests)
    members: dict[tuple[bool, bytes], list[int]] = {}
    for place, (program, literal) in enumerate(zip(programs, _choose_literals(programs), strict=True)):
        members.setdefault((program.folded, literal), []).append(place)
    keys = sorted(members)
    data, starts = pack_bytes([literal for _, literal in keys])
    nodes = kernel.build_tries(data, starts, sum(not folded for folded, _ in keys))
    shorter = np.full(len(keys) + 1, -1, np.int32)
    dense = kernel.link_failures(nodes, shorter)
    first = np.fromiter(accumulate((len(members[key]) for key in keys), initial=0), np.int32, len(keys) + 1)
    program_bytes, program_starts = pack_bytes([program.sketch for program in programs])
    patterns, pattern_starts = pack_bytes([test.pattern.encode() for test in tests])
    return {
        "nodes": nodes,
        "dense": dense,
        "literals": np.stack([first, shorter], axis=1),
        "members": np.array([place for key in keys for place in members[key]], np.int32),
        "owners": np.array(owners, np.int32),
        "doubtful": np.array([not program.decides for program in programs], np.uint8),
        "program_starts": program_starts,
        "programs": program_bytes,
        "pattern_starts": pattern_starts,
        "patterns": patterns,
        "ops": np.array([_OPS.index(test.op) + _IGNORING_CASE * test.ignoring_case for test in tests], np.uint8),
        "loose": np.array(loose, np.int32),
    }


def _compile_tests(tests: Sequence[TextTest]) -> tuple[list[int], list[TextProgram], list[int]]:
    """Return the id of each program's test, the programs, and the ids of the tests that are left to RE2's sets."""
    owners: list[int] = []
    programs: list[TextProgram] = []
    loose: list[int] = []
    for id, test in enumerate(tests):
        alternatives = compile_programs(test)
        longest = [max(map(len, program.list_runs()), default=0) for program in alternatives]
        if all(program.decides or run >= _WORTH_ASKING for program, run in zip(alternatives, longest, strict=True)):
            owners += [id] * len(alternatives)
            programs += alternatives
        else:
            loose.append(id)
    return owners, programs, loose


def _choose_literals(programs: list[TextProgram]) -> list[bytes]:
    """Return each program's literal: its longest run, one that few programs share where there is such a run."""
    runs = [program.list_runs() for program in programs]
    uses = Counter(run for several in runs for run in set(several))

    def compute_worth(run: bytes) -> tuple[bool, int]:
        return uses[run] <= _CROWD and len(run) >= _WORTH_ASKING, len(run)

    return [max(several, key=compute_worth, default=b"") for several in runs]


def _make_options(*, ignoring_case: bool) -> Any:
    """Return the options of `model.text_tests`, which defines what an expression means, but without captures."""
    import re2

    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = not ignoring_case
    return options


class Re2Expressions:
    """RE2 where the scan cannot decide: single expressions by id, and sets of those that require no literal.

    `find` returns an id's expression, `loose` are the ids without a literal. All is compiled when it is first needed.
    """

    def __init__(self, find: Callable[[int], RegexSource], loose: Sequence[int], set_memory: int = SET_MEMORY) -> None:
        self._find = find
        self._loose, self._set_memory = loose, set_memory
        self._sets: list[ExpressionSet] | None = None
        self._search = lru_cache(maxsize=KEPT_EXPRESSIONS)(self._compile_search)

    def accepts(self, id: int, text: bytes) -> bool:
        """Tell whether the text satisfies one expression."""
        return self._search(id)(text) is not None

    def find_loose(self, text: bytes) -> Iterator[int]:
        """Yield the ids without a literal whose expressions the text satisfies."""
        if self._sets is None:
            sets: list[ExpressionSet] = []
            for ignoring_case in (False, True):
                ids = [id for id in self._loose if self._find(id)[1] == ignoring_case]
                for first in range(0, len(ids), SET_SIZE):
                    sets += self._build_sets(ids[first : first + SET_SIZE], ignoring_case=ignoring_case)
            self._sets = sets
        for ids, search_set in self._sets:
            places = (search_set.Match(text) if search_set is not None else None) or ()
            # When its memory is spent, RE2 answers as if nothing matched. The last member of a set accepts every text,
            # so where that one is missing from the answer the expressions are tried one by one.
            if len(ids) in places:
                yield from (ids[place] for place in places if place < len(ids))
            else:
                yield from (id for id in ids if self.accepts(id, text))

    def _compile_search(self, id: int) -> Callable[[bytes], object]:
        import re2

        expression, ignoring_case = self._find(id)
        compiled = re2.compile(expression, options=_make_options(ignoring_case=ignoring_case))
        search: Callable[[bytes], object] = compiled.search
        return search

    def _build_sets(self, ids: list[int], *, ignoring_case: bool) -> Iterator[ExpressionSet]:
        """Yield one set or, where RE2 finds it too large, two of half the size, down to single expressions."""
        import re2

        options = _make_options(ignoring_case=ignoring_case)
        options.max_mem = self._set_memory
        search_set = re2.Set.SearchSet(options)
        try:
            for id in ids:
                search_set.Add(self._find(id)[0])
            search_set.Add(r"\z")
            search_set.Compile()
        except re2.error:
            if len(ids) == 1:
                yield ids, None
                return
            for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
                yield from self._build_sets(half, ignoring_case=ignoring_case)
            return
        yield ids, search_set
