"""A hash table from ids to slots: open addressing, every byte of an id compared.

Ids are text (bytes and offsets) or numbers (the bits of int64). An entry of the table is 32 bits: the slot
in the low `bits`, as many as the number of ids needs, and above them a tag, part of the hash. A probe with
another tag is passed over without a look at the ids, so a search touches about one id however full the table.
Of equal ids the last one is found.

    entry   [ tag (32 - bits) | slot (bits) ]          0xFFFFFFFF: empty

    'bob': hash -> begin at place 2, tag 7       place    0    1    2    3    4    5
                                                 tag      -    4    3    7    -    9     2: another tag, passed over
                                                 slot     -    8    1    5    -    0     3: same tag, ids[5] is compared

Invariant: the table always has an empty entry, so every search ends; nothing is ever removed from it. Cost of a search:
one or two cache misses, since entries that are passed over lie side by side, and one for the bytes of the id.

The hash multiplies 32 bits by 32 bits into 64, which never overflows: plain Python computes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import ByteArray, CodeArray, Int, IntArray, WordArray

EMPTY = np.uint32(0xFFFF_FFFF)
"""An entry without a slot. No other entry equals it: the greatest slot of `bits` is never used."""

HALF = np.uint64(32)
LOW = np.uint64(0xFFFF_FFFF)
EIGHT, SIXTEEN, TWENTY_FOUR = np.uint64(8), np.uint64(16), np.uint64(24)
ZERO, ONE = np.uint64(0), np.uint64(1)

BLOCK = 64
"""How many ids are searched for together."""

# Bits spread evenly: the fractions of the square roots of the first primes, made odd.
SEED_A, SEED_B = np.uint64(0x6A09E667), np.uint64(0xBB67AE85)
LAST_A, LAST_B = np.uint64(0x3C6EF373), np.uint64(0xA54FF53B)
TAG_A, TAG_B = np.uint64(0x510E527F), np.uint64(0x9B05688D)


@jit_inline
def _read_word(data: ByteArray, at: Int) -> np.uint64:
    """Return four bytes as a number, the first one lowest."""
    low = np.uint64(data[at]) | np.uint64(data[at + 1]) << EIGHT
    return low | np.uint64(data[at + 2]) << SIXTEEN | np.uint64(data[at + 3]) << TWENTY_FOUR


@jit_inline
def _finish_hash(product: np.uint64) -> np.uint64:
    """Return the hash of a state: the high half says where a search begins, the low half is the tag.

    The halves of a product are not evenly spread, their exclusive or is.
    """
    first = ((product & LOW) ^ LAST_A) * ((product >> HALF) ^ LAST_B)
    second = ((first & LOW) ^ TAG_A) * ((first >> HALF) ^ TAG_B)
    return (((first >> HALF) ^ first) & LOW) << HALF | ((second >> HALF) ^ second) & LOW


@jit
def hash_text(data: ByteArray, start: Int, end: Int) -> np.uint64:
    """Return the hash of the bytes from `start` up to `end`."""
    product = np.uint64(end - start) & LOW
    at = start
    while at + 8 <= end:
        product = ((product & LOW) ^ SEED_A ^ _read_word(data, at)) * (
            (product >> HALF) ^ SEED_B ^ _read_word(data, at + 4)
        )
        at += 8
    if at < end:
        low_word = high_word = np.uint64(0)
        if at + 4 <= end:
            low_word = _read_word(data, at)
            at += 4
        shift = np.uint64(0)
        while at < end:
            high_word |= np.uint64(data[at]) << shift
            shift += EIGHT
            at += 1
        product = ((product & LOW) ^ SEED_A ^ low_word) * ((product >> HALF) ^ SEED_B ^ high_word)
    return _finish_hash(product)


@jit_inline
def hash_number(bits: np.uint64) -> np.uint64:
    """Return the hash of the 64 bits of a number."""
    return _finish_hash(((bits & LOW) ^ SEED_A) * ((bits >> HALF) ^ SEED_B))


@jit_inline
def _is_same(data: ByteArray, start: Int, end: Int, other: ByteArray, other_start: Int) -> bool:
    """Tell whether two runs of bytes of one length are equal."""
    equal = True
    at, beside = start, other_start
    while equal and at + 4 <= end:
        equal = _read_word(data, at) == _read_word(other, beside)
        at += 4
        beside += 4
    while equal and at < end:
        equal = data[at] == other[beside]
        at += 1
        beside += 1
    return equal


@jit_inline
def _count_slot_bits(count: Int) -> np.uint64:
    """Return how many bits an entry keeps for the slot: enough for `count` itself, so that none is `EMPTY`."""
    bits = np.uint64(1)
    while np.uint64(count) >> bits != np.uint64(0):
        bits += ONE
    return bits


@jit_inline
def _find_start(hash: np.uint64, size: Int) -> Int:
    """Return where in a table of `size` entries the search begins: the hash as a share of it, without a division."""
    return np.int64((hash >> HALF) * np.uint64(size) >> HALF)


@jit_inline
def _step(place: Int, size: Int) -> Int:
    return place + 1 if place + 1 < size else 0


@jit_inline
def _find_tag(table: CodeArray, place: Int, tag: np.uint64, bits: np.uint64) -> Int:
    """Return the first place from here on that has this tag, or the empty one that ends the search."""
    size = len(table)
    while table[place] != EMPTY and np.uint64(table[place]) >> bits != tag:
        place = _step(place, size)
    return place


@jit_inline
def _get_tag(hash: np.uint64, bits: np.uint64) -> np.uint64:
    return (hash & LOW) >> bits


@jit_inline
def _get_slot(entry: np.uint32, bits: np.uint64) -> Int:
    return np.int64(np.uint64(entry) & ((ONE << bits) - ONE))


@jit_inline
def _make_entry(slot: Int, tag: np.uint64, bits: np.uint64) -> np.uint32:
    return np.uint32(tag << bits | np.uint64(slot))


@jit
def find_text_place(
    data: ByteArray, offsets: IntArray, table: CodeArray, place: Int, tag: np.uint64, asked: ByteArray, start: Int,
    end: Int,
) -> Int:  # fmt: skip
    """Return the place in the table of one text, or the empty one that ends the search, which begins at `place`."""
    size, bits = len(table), _count_slot_bits(len(offsets) - 1)
    place = _find_tag(table, place, tag, bits)
    while table[place] != EMPTY:
        slot = _get_slot(table[place], bits)
        low, high = np.int64(offsets[slot]), np.int64(offsets[slot + 1])
        if high - low == end - start and _is_same(asked, start, end, data, low):
            break
        place = _find_tag(table, _step(place, size), tag, bits)
    return place


@jit
def find_number_place(numbers: WordArray, table: CodeArray, place: Int, tag: np.uint64, asked: np.uint64) -> Int:
    """Return the place in the table of one number, or the empty one that ends the search, which begins at `place`."""
    size, bits = len(table), _count_slot_bits(len(numbers))
    place = _find_tag(table, place, tag, bits)
    while table[place] != EMPTY and numbers[_get_slot(table[place], bits)] != asked:
        place = _find_tag(table, _step(place, size), tag, bits)
    return place


# The loops below go through `BLOCK` ids at a time and first touch, in short loops without a branch, what the
# search will read: the waits for memory then overlap, where a search after the other would wait for each.


@jit_inline
def _hash_texts(asked: ByteArray, offsets: IntArray, base: Int, count: Int, hashes: WordArray) -> None:
    for at in range(count):
        hashes[at] = hash_text(asked, np.int64(offsets[base + at]), np.int64(offsets[base + at + 1]))


@jit_inline
def _touch_table(table: CodeArray, hashes: WordArray, count: Int, places: IntArray, touched: CodeArray) -> None:
    for at in range(count):
        places[at] = _find_start(hashes[at], len(table))
        touched[at] = table[places[at]]


@jit
def build_text(data: ByteArray, offsets: IntArray, table: CodeArray) -> Int:
    """Fill an empty table, which must have room for every text and one entry more; return how many differ."""
    size, bits, differ = len(offsets) - 1, _count_slot_bits(len(offsets) - 1), 0
    hashes, places, touched = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32)
    for base in range(0, size, BLOCK):
        count = min(BLOCK, size - base)
        _hash_texts(data, offsets, base, count, hashes)
        _touch_table(table, hashes, count, places, touched)
        for at in range(count):
            start, end = np.int64(offsets[base + at]), np.int64(offsets[base + at + 1])
            tag = _get_tag(hashes[at], bits)
            place = find_text_place(data, offsets, table, places[at], tag, data, start, end)
            differ += table[place] == EMPTY
            table[place] = _make_entry(base + at, tag, bits)
    return differ


@jit
def build_numbers(numbers: WordArray, table: CodeArray) -> Int:
    """Fill an empty table, which must have room for every number and one entry more; return how many differ."""
    size, bits, differ = len(numbers), _count_slot_bits(len(numbers)), 0
    hashes, places, touched = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32)
    for base in range(0, size, BLOCK):
        count = min(BLOCK, size - base)
        for at in range(count):
            hashes[at] = hash_number(numbers[base + at])
        _touch_table(table, hashes, count, places, touched)
        for at in range(count):
            tag = _get_tag(hashes[at], bits)
            place = find_number_place(numbers, table, places[at], tag, numbers[base + at])
            differ += table[place] == EMPTY
            table[place] = _make_entry(base + at, tag, bits)
    return differ


@jit
def find_text(
    data: ByteArray, offsets: IntArray, table: CodeArray, asked: ByteArray, asked_offsets: IntArray
) -> IntArray:
    """Return the slot of each text asked for, -1 where there is none."""
    size, bits, last = len(asked_offsets) - 1, _count_slot_bits(len(offsets) - 1), len(offsets) - 1
    slots = np.empty(size, np.int64)
    hashes, places, touched = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32)
    for base in range(0, size, BLOCK):
        count = min(BLOCK, size - base)
        _hash_texts(asked, asked_offsets, base, count, hashes)
        _touch_table(table, hashes, count, places, touched)
        for at in range(count):
            places[at] = _find_tag(table, places[at], _get_tag(hashes[at], bits), bits)
            slots[base + at] = offsets[min(_get_slot(table[places[at]], bits), last)]
        for at in range(count):
            if slots[base + at] < len(data):
                touched[at] = data[slots[base + at]]
        for at in range(count):
            start, end = np.int64(asked_offsets[base + at]), np.int64(asked_offsets[base + at + 1])
            place = find_text_place(data, offsets, table, places[at], _get_tag(hashes[at], bits), asked, start, end)
            slots[base + at] = -1 if table[place] == EMPTY else _get_slot(table[place], bits)
    return slots


@jit
def find_numbers(numbers: WordArray, table: CodeArray, asked: WordArray) -> IntArray:
    """Return the slot of each number asked for, -1 where there is none."""
    size, bits = len(asked), _count_slot_bits(len(numbers))
    slots = np.empty(size, np.int64)
    hashes, places, touched = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64), np.empty(BLOCK, np.uint32)
    for base in range(0, size, BLOCK):
        count = min(BLOCK, size - base)
        for at in range(count):
            hashes[at] = hash_number(asked[base + at])
        _touch_table(table, hashes, count, places, touched)
        for at in range(count):
            places[at] = _find_tag(table, places[at], _get_tag(hashes[at], bits), bits)
            slot = _get_slot(table[places[at]], bits)
            touched[at] = numbers[slot] & LOW if slot < len(numbers) else ZERO
        for at in range(count):
            place = find_number_place(numbers, table, places[at], _get_tag(hashes[at], bits), asked[base + at])
            slots[base + at] = -1 if table[place] == EMPTY else _get_slot(table[place], bits)
    return slots
