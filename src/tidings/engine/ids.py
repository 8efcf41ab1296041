"""The ids of a segment's subscriptions: slot to id, and id to slot.

Ids are all text or all 64-bit integers, kept flat: numbers as they are, text as UTF-8 bytes and offsets, and a hash
table of slots (`kernels.match.id_table`). No id is a Python object until it is returned, and the arrays can be
memory-mapped as they are, so opening costs nothing. Beside the ids themselves, the table costs 6.7 bytes an id and the
offsets of text 4 (8 from 4 GiB of text on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tidings.engine.arrays import freeze
from tidings.errors import TidingsError
from tidings.kernels.array_types import ByteArray, CodeArray, IntArray, WordArray
from tidings.kernels.match import id_table as kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    SlotNumbers: TypeAlias = NDArray[np.integer[Any]] | Sequence[int]
    IdSource: TypeAlias = Sequence[str] | Sequence[int] | pa.Array | NDArray[Any]

LOAD = 0.6
"""How full the table is: a search for an unknown id then looks at 3.6 neighbouring entries on average."""

LONGEST = 2**31
"""The most ids: the table, and a slot in its entries, stay within 32 bits."""

INT64 = np.iinfo(np.int64)

CHUNK = 16384
"""Ids that an iteration turns into Python objects at a time."""

MAX_SINGLE_READS = 32
"""So many ids are read sooner one by one than through Arrow."""


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Sizes of text at which arrays get wider."""

    arrow_bytes: int = 2**31 - 1
    """The most bytes of text that Arrow's `string` holds; beyond it is `large_string`."""

    wide_bytes: int = 2**32
    """From so many bytes of text on, offsets are int64."""


TEXT_LIMITS = TextLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """Ids by slot, with a hash table from id to slot; `Ids.build` makes one.

    Ids need not be distinct: of equal ones, `find` returns the last slot.

    >>> ids = Ids.build(["ann", "bob"])
    >>> ids[1], ids.find("ann"), ids.find("eve"), ids.find(1)
    ('bob', 0, -1, -1)
    """

    values: WordArray | ByteArray  # the bits of the numbers, or the bytes of the text
    offsets: CodeArray | IntArray | None  # None: the ids are numbers
    table: CodeArray
    limits: TextLimits = TEXT_LIMITS

    @classmethod
    def build(cls, ids: IdSource, limits: TextLimits = TEXT_LIMITS) -> Ids:
        """Take ids from a sequence, an Arrow array (plain, chunked or dictionary) or a numpy array."""
        return cls._from_arrow(_normalize(ids), limits)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Ids:
        """Wrap the arrays of `to_arrays`, which may be memory-mapped; none is read."""
        if "numbers" in arrays:
            return cls(freeze(arrays["numbers"]).view(np.uint64), None, freeze(arrays["table"]))
        return cls(freeze(arrays["bytes"]), freeze(arrays["offsets"]), freeze(arrays["table"]))

    @classmethod
    def concatenate(cls, parts: Sequence[Ids], keep: Sequence[SlotNumbers]) -> Ids:
        """Concatenate the `keep` slots of several; parts of which nothing is kept may be of another kind."""
        import pyarrow as pa

        kept = [part.take(slots) for part, slots in zip(parts, keep, strict=True) if len(slots)]
        if len({pa.types.is_integer(array.type) for array in kept}) > 1:
            msg = "ids are all text or all integers: the parts to join have both"
            raise TidingsError(msg)
        if not kept:
            return cls._from_arrow(parts[0].take([]), parts[0].limits) if parts else cls.build([])
        if not pa.types.is_integer(kept[0].type):
            kept = [array.cast(pa.large_string()) for array in kept]
        return cls._from_arrow(pa.concat_arrays(kept), parts[0].limits)

    @classmethod
    def _from_arrow(cls, array: pa.Array, limits: TextLimits) -> Ids:
        if len(array) > LONGEST:
            msg = f"`{len(array)}` ids are too many for one segment; at most {LONGEST}"
            raise TidingsError(msg)
        values, offsets = _to_buffers(array)
        table = np.full(int(len(array) / LOAD) + 1, kernel.EMPTY, np.uint32)
        if offsets is None:
            kernel.build_numbers(values, table)
        else:
            offsets = freeze(offsets.astype(np.uint32) if offsets[-1] < limits.wide_bytes else offsets)
            kernel.build_text(values, offsets, table)
        return cls(values, offsets, freeze(table), limits)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the flat arrays that `from_arrays` takes."""
        if self.offsets is None:
            return {"numbers": self.values.view(np.int64), "table": self.table}
        return {"bytes": self.values, "offsets": self.offsets, "table": self.table}

    def find(self, id: object) -> int:
        """Return the slot of an id, or -1."""
        if self.offsets is not None:
            if not isinstance(id, str):
                return -1
            try:
                sought = np.frombuffer(id.encode(), np.uint8)
            except UnicodeEncodeError:  # a lone surrogate; no id has one
                return -1
            return int(self._look_up(sought, np.array((0, len(sought)), np.int64))[0])
        if not isinstance(id, int | np.integer) or isinstance(id, bool) or not INT64.min <= id <= INT64.max:
            return -1
        return int(self._look_up(freeze(np.array((id,), np.int64).view(np.uint64)), None)[0])

    def find_many(self, ids: IdSource) -> IntArray:
        """Return the slot of each id, or -1."""
        try:
            values, offsets = _to_buffers(_normalize(ids))
        except TidingsError:  # one of them cannot be an id; the others may still be slots
            singles: Any = ids.to_pylist() if hasattr(ids, "to_pylist") else ids
            return np.array([self.find(id) for id in singles], np.int64)
        if (offsets is None) != (self.offsets is None):
            return np.full(len(ids), -1, np.int64)
        return self._look_up(values, offsets)

    def _look_up(self, values: NDArray[Any], offsets: NDArray[Any] | None) -> IntArray:
        """Return the slots of flat ids, which are of the same kind, or -1."""
        if self.offsets is None or offsets is None:
            slots = kernel.find_numbers(self.values, self.table, values)
        else:
            slots = kernel.find_text(self.values, self.offsets, self.table, values, freeze(offsets))
        return cast("IntArray", slots)

    def find_duplicates(self) -> IntArray:
        """Return the slots whose id occurs again at a later slot."""
        if np.count_nonzero(self.table != kernel.EMPTY) == len(self):
            return np.empty(0, np.int64)
        return np.flatnonzero(self._look_up(self.values, self.offsets) != np.arange(len(self))).astype(np.int64)

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, slot: int) -> str | int:
        if not 0 <= slot < len(self):
            msg = f"slot `{slot}` is not among the {len(self)}"
            raise IndexError(msg)
        if self.offsets is None:
            return int(self.values.view(np.int64)[slot])
        return self.values[int(self.offsets[slot]) : int(self.offsets[slot + 1])].tobytes().decode()

    def __iter__(self) -> Iterator[str | int]:
        whole = self._to_arrow()
        for start in range(0, len(self), CHUNK):
            yield from whole.slice(start, CHUNK).to_pylist()

    def take(self, slots: SlotNumbers) -> pa.Array:
        """Return the ids at these slots as Arrow's int64 or string (large_string from 2 GiB on)."""
        import pyarrow as pa

        slots = np.asarray(slots, np.int64)
        if self.offsets is None:
            return pa.array(self.values.view(np.int64)[slots])
        text_bytes = np.sum(self.offsets[slots + 1] - self.offsets[slots], dtype=np.int64)
        kind = pa.string() if text_bytes <= self.limits.arrow_bytes else pa.large_string()
        whole = self._to_arrow()
        if kind == pa.large_string():  # `take` of a `string` stays one, however long it gets
            whole = whole.cast(kind)
        return whole.take(pa.array(slots)).cast(kind)

    def to_list(self, slots: SlotNumbers) -> list[str | int]:
        """Return the ids at these slots as Python objects."""
        return [self[slot] for slot in slots] if len(slots) <= MAX_SINGLE_READS else list(self.take(slots).to_pylist())

    def _to_arrow(self) -> pa.Array:
        """Return all ids as an Arrow array over the same memory."""
        import pyarrow as pa

        if self.offsets is None:
            return pa.array(self.values.view(np.int64))
        kind, offsets = pa.string(), cast("NDArray[Any]", self.offsets)
        if len(self.values) > self.limits.arrow_bytes:
            kind, offsets = pa.large_string(), offsets.astype(np.int64)
        elif offsets.dtype == np.int64:
            offsets = offsets.astype(np.int32)
        return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(offsets), pa.py_buffer(self.values)])


def to_arrow_ids(ids: Sequence[str | int]) -> Any:
    """Return ids as an Arrow array, which is looked up three times as fast; as they are where Arrow cannot."""
    import pyarrow as pa

    try:
        return pa.array(ids)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError):
        return ids


def _normalize(ids: IdSource) -> pa.Array:
    """Return ids as an Arrow array of int64, string or large_string without nulls, or refuse them."""
    import pyarrow as pa

    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if isinstance(ids, np.ndarray):
        ids = pa.array(ids) if ids.dtype.kind in "iu" else ids.tolist()
    array = ids if isinstance(ids, pa.Array) else _list_to_arrow(list(ids))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        msg = f"the id at `{array.is_null().index(True).as_py()}` is null; every subscription needs one"
        raise TidingsError(msg)
    if pa.types.is_integer(array.type):
        return _to_int64(array)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        msg = f"an id is text or an integer, not Arrow's `{array.type}`"
        raise TidingsError(msg)
    return array


def _list_to_arrow(ids: list[Any]) -> pa.Array:
    import pyarrow as pa

    types = set(map(type, ids))
    try:
        if all(issubclass(type_, str) for type_ in types):
            return pa.array(ids, pa.large_string())
        if all(issubclass(type_, int | np.integer) and type_ is not bool for type_ in types):
            return pa.array(ids, pa.int64())
    except (UnicodeEncodeError, OverflowError, pa.ArrowException):
        pass  # `_explain_refusal` names the id
    raise _explain_refusal(ids)


def _explain_refusal(ids: list[Any]) -> TidingsError:
    """Return the error that names the first value that is not an id, or not of the first id's type."""
    textual = bool(ids) and isinstance(ids[0], str)
    for id in ids:
        if isinstance(id, bool) or not isinstance(id, str | int | np.integer):
            return TidingsError(f"an id is text or an integer, not `{id!r:.60}`")
        if isinstance(id, str) is not textual:
            return TidingsError(f"ids are all text or all integers: `{id!r:.60}` comes after `{ids[0]!r:.60}`")
        if not isinstance(id, str) and not INT64.min <= id <= INT64.max:
            return TidingsError(f"the id `{id}` does not fit 64 bits; write it as text")
        if isinstance(id, str) and id.encode(errors="ignore").decode() != id:
            return TidingsError(f"the id `{id!r:.60}` has half a character, which UTF-8 cannot write")
    return TidingsError("the ids cannot be kept")


def _to_int64(array: pa.Array) -> pa.Array:
    """Return integers of any width as int64; only uint64 can fail."""
    import pyarrow as pa

    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        large = int(np.max(array.to_numpy(zero_copy_only=False)))
        msg = f"the id `{large}` does not fit 64 bits; write it as text"
        raise TidingsError(msg) from None


def _to_buffers(array: pa.Array) -> tuple[NDArray[Any], IntArray | None]:
    """Return the bits of the numbers and None, or the bytes and offsets of the text; no bytes are copied."""
    import pyarrow as pa

    if pa.types.is_integer(array.type):
        return freeze(array.to_numpy()).view(np.uint64), None
    _, ends, text = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if len(array) == 0:
        return freeze(np.empty(0, np.uint8)), np.zeros(1, np.int64)
    offsets = np.frombuffer(ends, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.empty(0, np.uint8)
    return freeze(data[offsets[0] : offsets[-1]]), offsets - offsets[0]
