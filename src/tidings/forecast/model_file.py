"""Models as bytes: a version, then a header and arrays, compressed. Only what was counted is written."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import FileError, StateError
from tidings.forecast.courses.course import Course
from tidings.forecast.courses.tracked_course import build_tracked_course
from tidings.forecast.learning.counts import CODES, EDGES, CountedPattern, Counts, Traffic
from tidings.forecast.learning.group_counter import HalfLife
from tidings.lang import parse_pattern, render_pattern
from tidings.model.patterns import Mode
from tidings.patterns.state.graph_bytes import Arrays, Header, State, pack_state, unpack_state

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.forecast.model import Model
    from tidings.kernels.array_types import FloatArray

MAGIC = b"tidings-model-"
VERSION = 1
"""Of the file. One that is newer than this is refused by name."""


class StoredModel(NamedTuple):
    """The parts of a model: the keywords of its settings, what was counted, and how far."""

    settings: dict[str, Any]
    patterns: list[CountedPattern]
    traffic: Traffic
    now: tuple[int, int]


def write_model(model: Model) -> bytes:
    """Return a model as bytes."""
    arrays: Arrays = {}
    patterns = [_write_pattern(number, counted, arrays) for number, counted in enumerate(model.patterns.values())]
    settings = model.settings
    header = {
        "context": settings.context,
        "smoothing": settings.smoothing,
        "half_life": None if settings.half_life is None else [settings.half_life.amount, settings.half_life.timed],
        "estimator": settings.estimator,
        "edges": EDGES.tolist(),
        "now": list(model.now),
        "traffic": asdict(model.traffic),
        "patterns": patterns,
    }
    body = pack_state(header, arrays)
    rest = len(body).to_bytes(8, "little") + bytes(pa.compress(body, codec="zstd", asbytes=True))
    return MAGIC + str(VERSION).encode() + b"\n" + crc32(rest).to_bytes(4, "little") + rest


def _write_pattern(number: int, counted: CountedPattern, arrays: Arrays) -> Header:
    course, counts = counted.course, counted.counts
    for name, array in (("moves", counts.moves), ("waits", counts.waits), ("later", counts.later)):
        flat = array.ravel()
        arrays[f"{number}.{name}.at"] = places = np.flatnonzero(flat).astype(np.int32)
        arrays[f"{number}.{name}"] = flat[places]
    for span, span_counts in counts.spans.items():
        arrays[f"{number}.span.{span}"] = span_counts
    if course.tracker is None:
        arrays |= {f"{number}.table": course.table, f"{number}.hits": course.hits, f"{number}.groups": course.groups}
        arrays[f"{number}.idle"] = course.idle
    return {
        "name": counted.name,
        "pattern": json.loads(render_pattern(counted.pattern, "json")),
        "mode": str(counted.mode),
        "labels": list(course.labels),
        "states": list(course.states),
        "depth": course.depth,
        "start": course.start,
        "shape": [*course.table.shape, course.cells, len(counts.later)],
        "tracked": course.tracker is not None,
        "spans": list(counts.spans),
    }


def read_model(data: bytes) -> StoredModel:
    """Return the parts of a model that `write_model` wrote; `StateError` when the bytes are none."""
    header, arrays = _open_file(data)
    try:
        settings = {name: header[name] for name in ("context", "smoothing", "estimator")}
        settings["half_life"] = None if header["half_life"] is None else HalfLife(*header["half_life"])
        if header["edges"] != EDGES.tolist():
            msg = "the model counts waiting times in other bins; train it again"
            raise StateError(msg)
        described = enumerate(header["patterns"])
        patterns = [_read_pattern(number, saved, arrays, settings["context"]) for number, saved in described]
        return StoredModel(settings, patterns, Traffic(**header["traffic"]), tuple(header["now"]))
    except (KeyError, TypeError, IndexError) as problem:
        msg = f"the model's file is damaged: {problem!r}"
        raise StateError(msg) from problem


def _open_file(data: bytes) -> State:
    head = bytes(data[:64]).partition(b"\n")[0]
    if not head.startswith(MAGIC):
        msg = "this is not a model; td.Model.save writes one"
        raise StateError(msg)
    version = head[len(MAGIC) :]
    if version != str(VERSION).encode():
        written = version.decode(errors="replace")
        msg = f"the model is of version {written}, this program reads {VERSION}; train it again"
        raise StateError(msg)
    begin = len(head) + 1
    rest = data[begin + 4 :]
    # Compression alone does not notice every wrong byte, and a wrong count looks like any other.
    if len(rest) < 8 or crc32(rest) != int.from_bytes(data[begin : begin + 4], "little"):
        msg = "the model's file is damaged or cut short"
        raise StateError(msg)
    size = int.from_bytes(rest[:8], "little")
    try:
        body = pa.decompress(rest[8:], decompressed_size=size, codec="zstd", asbytes=True)
    except (OSError, ValueError, pa.ArrowException, MemoryError) as problem:
        msg = "the model's file is damaged or cut short"
        raise StateError(msg) from problem
    return unpack_state(body)


def _read_pattern(number: int, description: Header, arrays: Arrays, context: int) -> CountedPattern:
    pattern, mode = parse_pattern(description["pattern"], notation="json"), Mode(description["mode"])
    rows, labels, cells, later = description["shape"]
    if description["tracked"]:
        course = build_tracked_course(pattern, mode, context=context)
    else:
        course = _read_exact_course(number, description, arrays)
    same_labels = list(course.labels) == description["labels"]
    if not same_labels or course.table.shape != (rows, labels) or course.cells != cells:
        msg = f"the model counts `{description['name']}` in another way than this program; train it again"
        raise StateError(msg)
    counts = Counts(
        _fill_array(arrays, f"{number}.moves", (rows, labels)),
        _fill_array(arrays, f"{number}.waits", (cells, CODES)),
        _fill_array(arrays, f"{number}.later", (later, CODES)),
        {span: arrays[f"{number}.span.{span}"] for span in description["spans"]},
    )
    return CountedPattern(description["name"], pattern, mode, course, counts)


def _read_exact_course(number: int, description: Header, arrays: Arrays) -> Course:
    table = arrays[f"{number}.table"]
    return Course(
        approximate=False,
        states=tuple(description["states"]),
        labels=tuple(description["labels"]),
        table=table,
        hits=arrays[f"{number}.hits"],
        groups=arrays[f"{number}.groups"],
        idle=arrays[f"{number}.idle"],
        chain_state_of=np.arange(len(table), dtype=np.int32),
        start=description["start"],
        depth=description["depth"],
    )


def _fill_array(arrays: Arrays, name: str, shape: tuple[int, int]) -> FloatArray:
    flat = np.zeros(shape[0] * shape[1])
    flat[arrays[f"{name}.at"]] = arrays[name]
    return flat.reshape(shape)


def save_bytes(data: bytes, path: Path) -> None:
    """Write a file, whole or not at all."""
    try:
        write_atomically(path, iter([data]))
    except OSError as problem:
        msg = f"{path}: cannot be written: {problem.strerror}"
        raise FileError(msg) from problem
