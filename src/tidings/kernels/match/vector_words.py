"""Truth rows: eight 64-bit words in one vector register, one bit for each of 512 events.

The compiler unrolls a loop over eight words into scalars and leaves them so; a tree's code then took two to
three times as long. These operations are compiled to vector instructions; a machine without registers of 512 bits
uses two or four. In plain Python a row is a small array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

WORDS = 8
"""Words in a row."""

EVENTS = 64 * WORDS
"""Events in a block: the bits of a row."""


def load(array: Any, at: Any) -> Any:
    """Return row `at` (a `uint64`) of a flat array of words."""
    return array[int(at) * WORDS : int(at) * WORDS + WORDS].copy()


def store(array: Any, at: Any, row: Any) -> Any:
    """Write row `at` (a `uint64`) of a flat array of words."""
    array[int(at) * WORDS : int(at) * WORDS + WORDS] = row


def prefetch(array: Any, at: Any) -> Any:
    """Ask for row `at` (a `uint64`) ahead of its use."""
    del array, at


def make_ones() -> Any:
    """Return a row of ones."""
    return np.full(WORDS, 0xFFFF_FFFF_FFFF_FFFF, np.uint64)


def flip(row: Any, bit: Any) -> Any:
    """Return the row, negated where `bit` (a `uint64`, 0 or 1) is 1."""
    return ~row if bit else row


def intersect(row: Any, other: Any) -> Any:
    """Return the bits that both rows have."""
    return row & other


def unite(row: Any, other: Any) -> Any:
    """Return the bits that one row or the other has."""
    return row | other


def xor(row: Any, other: Any) -> Any:
    """Return the bits that only one of the rows has."""
    return row ^ other


def mask_words(row: Any, word: Any) -> Any:
    """Return the bits of each word that `word` has as well."""
    return row & word


def shift_left(row: Any, by: Any) -> Any:
    """Return the row with each word shifted to the left by a `uint64`."""
    return row << by


def shift_right(row: Any, by: Any) -> Any:
    """Return the row with each word shifted to the right by a `uint64`."""
    return row >> by


def has_bits(row: Any) -> Any:
    """Tell whether any bit is set."""
    return bool(row.any())


# The same operations for the compiler: their types, then the LLVM instructions that each one becomes. LLVM's builder
# and values have no types of their own, hence `Any`.

F = TypeVar("F", bound=Callable[..., Any])
_WORD, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_VECTOR = ir.VectorType(_WORD, WORDS)


class _RowType(types.Type):
    """Eight words, as the compiler sees them."""


_row: Any = _RowType(name="tidings.words.Row")
_word: Any = types.uint64


@register_model(_RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)  # type: ignore[no-untyped-call]


def _declare(function: Any, result: Any, width: int) -> None:
    """Declare the type that a function of `width` arguments returns."""
    typers = (lambda: result, lambda a: result, lambda a, b: result, lambda a, b, c: result)  # noqa: ARG005
    type_callable(function)(lambda context: typers[width])  # noqa: ARG005


for _operation in (flip, intersect, unite, xor, mask_words, shift_left, shift_right, load):
    _declare(_operation, _row, 2)
_declare(make_ones, _row, 0)
_declare(has_bits, types.boolean, 1)
_declare(prefetch, types.void, 2)
_declare(store, types.void, 3)


def _lower(function: Any, *arguments: Any) -> Callable[[F], F]:
    """Register how a function with arguments of these types is compiled."""
    decorator: Callable[[F], F] = lower_builtin(function, *arguments)  # type: ignore[no-untyped-call]
    return decorator


def _point_at_row(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return the address of a row of a flat array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [builder.mul(at, _WORD(WORDS))]), _VECTOR.as_pointer())


def _broadcast(builder: Any, word: Any) -> Any:
    """Return a row of eight times the same word."""
    number = ir.IntType(32)
    first = builder.insert_element(_VECTOR(ir.Undefined), word, number(0))
    return builder.shuffle_vector(first, _VECTOR(ir.Undefined), ir.VectorType(number, WORDS)([0] * WORDS))


@_lower(load, types.Array, _word)
def _lower_load(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.load(_point_at_row(context, builder, signature.args[0], args[0], args[1]), align=8)


@_lower(store, types.Array, _word, _row)
def _lower_store(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    builder.store(args[2], _point_at_row(context, builder, signature.args[0], args[0], args[1]), align=8)
    return context.get_dummy_value()


@_lower(prefetch, types.Array, _word)
def _lower_prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    number = ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [_BYTES, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], shape)
    address = builder.bitcast(_point_at_row(context, builder, signature.args[0], args[0], args[1]), _BYTES)
    builder.call(function, [address, number(0), number(3), number(1)])  # to read, to keep, data
    return context.get_dummy_value()


@_lower(make_ones)
def _lower_make_ones(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    del context, builder, signature, args
    return _VECTOR([-1] * WORDS)


@_lower(flip, _row, _word)
def _lower_flip(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    del context, signature
    return builder.xor(args[0], _broadcast(builder, builder.neg(args[1])))


def _lower_as(function: Any, second: Any, instruction: str) -> None:
    """Compile a function of a row and a row or word to one instruction; a word stands for eight times itself."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        return getattr(builder, instruction)(args[0], args[1] if second is _row else _broadcast(builder, args[1]))

    _lower(function, _row, second)(build)


_lower_as(intersect, _row, "and_")
_lower_as(unite, _row, "or_")
_lower_as(xor, _row, "xor")
_lower_as(mask_words, _word, "and_")
_lower_as(shift_left, _word, "shl")
_lower_as(shift_right, _word, "lshr")


@_lower(has_bits, _row)
def _lower_has_bits(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    del context, signature
    whole = builder.bitcast(args[0], ir.IntType(EVENTS))
    return builder.icmp_unsigned("!=", whole, whole.type(0))
