"""Damaged snapshots: whichever byte of whichever file is another, the answer is an error or the right one."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tidings as td
from tidings.errors import SnapshotError
from tidings.matcher.live import claims

QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None

FILTERS = {
    **{f"n{n}": f"a in [{n} .. {n + 5}]" for n in range(40)},
    **{f"t{n}": f"t contains 'x{n}' or t like 'y*{n}'" for n in range(9)},
    **{f"o{n}": f"(a = {n} or b = {n}) and not (t = 'x{n}' or c exists)" for n in range(9)},
    "near": "spot near (8.5, 47.4) 5 km",
    "inside": "spot within POLYGON((8 47, 9 47, 9 48, 8 48, 8 47))",
}
EVENTS = [
    {"a": 3, "b": 1, "t": "x1 y23", "spot": {"lon": 8.5, "lat": 47.4}},
    {"a": 7, "t": "x7", "c": True, "spot": {"lon": 0.0, "lat": 0.0}},
    {"b": 2},
]
SCHEMA = td.Schema({"a": "number", "b": "number", "t": "text", "c": "bool", "spot": "place"})


def list_answers(matcher: td.Matcher) -> list[list[str]]:
    return [sorted(matcher.match(event)) for event in EVENTS]


def build_matcher(kind: str = "engine") -> td.Matcher:
    matcher = td.Matcher(kind, schema=SCHEMA)
    matcher.add_many(FILTERS.items())
    matcher.settle()
    return matcher


@dataclass(frozen=True)
class Kept:
    """A folder, and how it is asked."""

    folder: Path
    ask: Callable[[Path], object]


@cache
def save_snapshot(kind: str) -> Kept:
    folder = Path(tempfile.mkdtemp(dir=QUICK), "kept")
    if kind == "live":
        live = td.Live(folder, shards=2, schema=SCHEMA)
        live.add_many(FILTERS.items())
        live.remove("n3")
        live.claim("query", 7)
        return Kept(folder, lambda path: (list_answers(td.Live(path).open()), claims.read_claim(path, "query", 7)))
    matcher = build_matcher(kind)
    matcher.save(folder)
    matcher.remove_many(["n3", "near"])
    matcher.save(folder)
    return Kept(folder, lambda path: list_answers(td.Matcher.open(path)))


@contextmanager
def flip_byte(folder: Path, file: Path, at: int, bits: int) -> Iterator[Path]:
    """Yield a copy of a folder in which one byte is another."""
    with tempfile.TemporaryDirectory(dir=QUICK) as base:
        other = Path(base, "kept")
        shutil.copytree(folder, other)
        data = bytearray((other / file).read_bytes())
        data[at] ^= bits
        (other / file).write_bytes(bytes(data))
        yield other


@pytest.mark.parametrize("kind", ["engine", "brute", "live"])
@given(data=st.data(), where=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
@examples(150)
def test_whichever_byte_is_another_the_answer_is_an_error_or_the_right_one(kind, data, where, bits):
    original = save_snapshot(kind)
    files = sorted(path.relative_to(original.folder) for path in original.folder.rglob("*") if path.is_file())
    file = data.draw(st.sampled_from(files))
    length = (original.folder / file).stat().st_size
    with flip_byte(original.folder, file, int(where * length), bits) as other:
        try:
            answer = original.ask(other)
        except SnapshotError:
            return
    # A space of JSON that became another kind of space says the same; of the data nothing does.
    assert file.name == "manifest.json" or file.parts[0] in ("versions", "claims"), f"`{file}` is not refused"
    assert answer == original.ask(original.folder)
