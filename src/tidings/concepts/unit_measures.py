"""What a unit is: an affine map to the base units of its dimension, in exact fractions.

Physical units come from pint, read with fractions instead of floats, so that twelve inches are exactly
one foot. Pint is loaded when the first physical unit is met (half a second).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeAlias

from tidings.concepts.spelling import did_you_mean

Dimension: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Base units with their powers, by name; of a pure number, empty."""

CACHED = 4096
"""Events may name units freely, so what is remembered of them is bounded."""

COMMON = (
    "kB", "MB", "GB", "TB", "Mbit", "km", "cm", "mm", "kg", "mg", "ml", "cl", "kW", "kWh", "kHz", "MHz", "GHz", "mAh",
)  # fmt: skip
"""Prefixed units worth suggesting; pint makes them up when asked and does not list them."""

_WORD = re.compile(r"[^\W\d_]\w*")


@dataclass(frozen=True, slots=True)
class Measure:
    """An amount of the unit is `amount * scale + offset` of the dimension's base units."""

    scale: Fraction
    dimension: Dimension
    offset: Fraction = Fraction(0)

    def times(self, other: Measure, power: Fraction) -> Measure:
        """Return the product with a power of another; offsets have no meaning in a product."""
        powers = dict(self.dimension)
        for name, exponent in other.dimension:
            powers[name] = powers.get(name, Fraction(0)) + exponent * power
        dimension = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
        return Measure(self.scale * Fraction(other.scale**power), dimension)

    @property
    def base(self) -> str:
        """The dimension as a unit."""
        above = [_power(name, power) for name, power in self.dimension if power > 0]
        below = [_power(name, -power) for name, power in self.dimension if power < 0]
        if above:
            return "/".join(["*".join(above), *below])
        return "*".join(_power(name, power) for name, power in self.dimension) or "dimensionless"


ONE = Measure(Fraction(1), ())
"""The pure number one."""


def _power(name: str, power: Fraction) -> str:
    return name if power == 1 else f"{name}^{float(power):g}"


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(non_int_type=Fraction)


@lru_cache(maxsize=CACHED)
def physical(word: str) -> Measure | None:
    """Return the physical unit of that name; words only, since pint would evaluate anything else."""
    import pint

    if not _WORD.fullmatch(word):
        return None
    registry = _registry()
    try:
        zero, unit, double = (registry.Quantity(Fraction(n), word).to_base_units() for n in range(3))
        scale, offset = Fraction(unit.magnitude - zero.magnitude), Fraction(zero.magnitude)
        straight = double.magnitude - unit.magnitude == scale
        dimension = tuple(sorted((name, Fraction(power)) for name, power in unit.unit_items()))
    except (pint.PintError, AttributeError, AssertionError, TypeError, ValueError, ArithmeticError):
        return None
    # A logarithmic unit (decibel) is no straight line; comparing in it would mislead.
    return Measure(scale, dimension, offset) if straight and scale else None


@lru_cache(maxsize=CACHED)
def physical_hint(word: str) -> str:
    """Return the end of an error's text for a word that is no unit."""
    if not _WORD.fullmatch(word):
        return ""
    words = (*_registry(), *COMMON)
    if word in words:
        return "; its scale is logarithmic, and such units are not converted"
    for respelled in (word.upper(), word.lower(), word.capitalize()):
        if respelled != word and physical(respelled):
            return f"; did you mean `{respelled}`?"
    return did_you_mean(word, words)
