"""Bits of 64-bit words: the place of the lowest one that is set, how many are, and bits of many words by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from tidings.kernels.jit import jit, jit_inline

if TYPE_CHECKING:
    from tidings.kernels.array_types import Int, Int32Array, IntArray, WordArray


@intrinsic
def _count_trailing_zeros(context, word):  # type: ignore[no-untyped-def]
    """Count trailing zeros, by LLVM's instruction, which Numba does not offer."""
    del context

    def build(inner, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del inner, signature
        return builder.cttz(arguments[0], numba.core.cgutils.false_bit)

    return types.uint64(types.uint64), build


def find_lowest_bit(word: np.uint64) -> Int:
    """Return the place of the lowest bit of a word that is not zero."""
    number = int(word)
    return (number & -number).bit_length() - 1


@overload(find_lowest_bit, inline="always")
def _compile_find_lowest_bit(word):  # type: ignore[no-untyped-def]
    del word
    return lambda word: np.int64(_count_trailing_zeros(word))  # Numba passes the context


@jit_inline
def count_bits(word: np.uint64) -> Int:
    """Count the bits of a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@jit_inline
def set_bit(words: WordArray, number: np.uint64, on: bool) -> None:
    """Set the bit of this number, 64 to a word, where `on` is true; without a branch."""
    words[number >> np.uint64(6)] |= np.uint64(on) << (number & np.uint64(63))


@jit
def set_bits(words: WordArray, numbers: IntArray | Int32Array) -> None:
    """Set the bits of these numbers, 64 to a word."""
    for at in range(len(numbers)):
        set_bit(words, np.uint64(numbers[at]), True)


@jit
def clear_bits(words: WordArray, numbers: IntArray | Int32Array) -> None:
    """Clear the bits of these numbers, 64 to a word."""
    for at in range(len(numbers)):
        number = np.uint64(numbers[at])
        words[number >> np.uint64(6)] &= ~(np.uint64(1) << (number & np.uint64(63)))
