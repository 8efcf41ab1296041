"""Units: one number for one amount, whatever unit it is given in.

A unit is an affine map to the base units of its dimension, in exact fractions: twelve inches are exactly one foot.
Physical units are pint's, which is loaded when the first of them is met (half a second); a currency is worth what the
table says; an alias is another spelling, or a multiple, of a unit. Products, quotients and powers of units are units
(`USD/kg`, `km per hour`, `m^2`). After its first use a conversion is one look-up and integer arithmetic, exact until
the last division.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NoReturn, TypeAlias

from tidings.concepts.spelling import did_you_mean, fold
from tidings.errors import OntologyError, UnitMismatch, UnknownUnit
from tidings.model.values import INT_MAX, INT_MIN

Dimension: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Base units with their powers, by name; of a pure number, empty."""

CACHED = 4096
"""Conversions that are cached at most: events may name any number of units."""

COMMON = (
    "kB", "MB", "GB", "TB", "Mbit", "km", "cm", "mm", "kg", "mg", "ml", "cl", "kW", "kWh", "kHz", "MHz", "GHz", "mAh",
)  # fmt: skip
"""Prefixed units that are suggested for a mistyped one; pint derives these on demand and does not list them."""

_CURRENCY_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB"}
SIGNS = {**_CURRENCY_SIGNS, "%": "percent", "‰": "permille", "°": "degree", "°C": "degC", "°F": "degF"}
"""Signs that stand for a unit's name; an alias of the user's goes before them."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = r"(?:[^\W\d]|[%‰°$€£¥₹₽])\w*"
_FACTOR = rf"(?P<word>{_WORD}?)(?:(?:\^|\*\*)(?P<power>-?\d(?:\.\d+)?)|(?P<high>[²³]))?"
_BARE_FACTOR = re.sub(r"\?P<\w+>", "?:", _FACTOR)
_UNIT = re.compile(rf"{_BARE_FACTOR}(?:(?:\s*[*·/]\s*|\s+per\s+){_BARE_FACTOR})*")
_SIGN = re.compile(r"\s*(?:(?<!\*)([*·/])(?!\*)|\b(per)\b)\s*")
_AFTER = re.compile(rf"(?P<amount>{_NUMBER})\s*(?P<unit>[^\s\d].*)")
_BEFORE = re.compile(rf"(?P<unit>[^\s\d.+-]+)\s*(?P<amount>{_NUMBER})")
_LONGEST = 100  # characters: expressions over event values must not backtrack over long texts
_PLAIN = re.compile(r"[^\W\d_]\w*")


@dataclass(frozen=True, slots=True)
class Measure:
    """An amount of the unit is `amount * scale + offset` of the dimension's base units."""

    scale: Fraction
    dimension: Dimension
    offset: Fraction = Fraction(0)

    def multiply(self, other: Measure, power: Fraction) -> Measure:
        """Return the product with a power of another; offsets have no meaning in a product."""
        powers = dict(self.dimension)
        for name, exponent in other.dimension:
            powers[name] = powers.get(name, Fraction(0)) + exponent * power
        dimension = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
        return Measure(self.scale * Fraction(other.scale**power), dimension)

    @property
    def base(self) -> str:
        """The dimension as a unit."""
        above = [_format_power(name, power) for name, power in self.dimension if power > 0]
        below = [_format_power(name, -power) for name, power in self.dimension if power < 0]
        if above:
            return "/".join(["*".join(above), *below])
        return "*".join(_format_power(name, power) for name, power in self.dimension) or "dimensionless"


ONE = Measure(Fraction(1), ())
"""The pure number one."""


def _format_power(name: str, power: Fraction) -> str:
    return name if power == 1 else f"{name}^{float(power):g}"


@dataclass(frozen=True, slots=True)
class AttributeUnit:
    """The unit an attribute is kept in, and the event attribute that may name the unit of a given value."""

    unit: str
    unit_from: str | None = None


@dataclass(frozen=True, slots=True)
class Currencies:
    """A base currency, and the worth of one unit of each other currency in it."""

    base: str
    rates: Mapping[str, int | float]

    def find_worth(self, name: str) -> Fraction | None:
        """Return the worth in the base currency; a rate is the decimal number it was written as."""
        if name == self.base:
            return Fraction(1)
        rate = self.rates.get(name)
        return None if rate is None else Fraction(repr(rate))

    def __iter__(self) -> Iterator[str]:
        yield self.base
        yield from self.rates

    def __hash__(self) -> int:
        """Hash by content; a mapping has no hash of its own."""
        return hash((self.base, frozenset(self.rates.items())))


class Units:
    """Physical units, the user's aliases and currencies.

    >>> Units(currencies=Currencies("USD", {"EUR": 1.08})).convert(450, "EUR", to="$")
    486
    """

    __slots__ = ("_conversions", "_folded", "aliases", "currencies", "measures")

    def __init__(self, aliases: Mapping[str, str] | None = None, currencies: Currencies | None = None) -> None:
        """Take the tables; an alias of an unknown unit is refused when it is first used."""
        self.aliases = dict(aliases or {})
        self.currencies = currencies
        self._folded = {fold(name): name for name in (*self.aliases, *(currencies or ()))}
        self.measures: dict[str, Measure] = {}
        self._conversions: dict[tuple[str, str], tuple[int, int, int]] = {}

    def __reduce__(self) -> tuple[type[Units], tuple[dict[str, str], Currencies | None]]:
        """Pickle the tables alone, without the caches."""
        return Units, (self.aliases, self.currencies)

    def canonical(self, unit: str) -> str:
        """Return the name that aliases give the unit, up to an alias that is an amount (`dozen` = `12 pieces`)."""
        seen = {unit}
        while True:
            target = self.aliases.get(unit) or SIGNS.get(unit)
            if target is None or target in seen or _AFTER.fullmatch(target):
                return unit
            seen.add(target)
            unit = target

    def convert(self, amount: float, unit: str, *, to: str) -> int | float:
        """Return the same amount in another unit; whole results are integers."""
        if unit == to or self.canonical(unit) == self.canonical(to):
            return amount
        factor, shift, divisor = self._find_conversion(unit, to)
        numerator, denominator = amount.as_integer_ratio()  # exact, of a float too
        return _divide(numerator * factor + shift * denominator, divisor * denominator)

    def base(self, unit: str) -> str:
        """Return the base unit of the unit's dimension."""
        return self.measure(unit).base

    def read(self, text: str) -> tuple[int | float, str] | None:
        """Read a number and a unit (a currency may stand first); nothing if it is not that."""
        text = text.strip()
        match = (_AFTER.fullmatch(text) or _BEFORE.fullmatch(text)) if len(text) <= _LONGEST else None
        if not match or _is_number(text):
            return None
        unit, amount = match["unit"], match["amount"]
        if text.startswith(unit):
            is_unit = unit in _CURRENCY_SIGNS or unit in (self.currencies or ())
        else:
            is_unit = _UNIT.fullmatch(unit) is not None
        if not (is_unit or unit in self.aliases):
            return None  # `A4` and `12 Main Street` are words with numbers, not amounts
        if not _is_number(amount):
            return None
        return int(amount) if amount.lstrip("+-").isdecimal() else float(amount), self.canonical(unit)

    def measure(self, unit: str) -> Measure:
        """Return the scale and dimension of a unit; an unknown one is refused."""
        measure = self.measures.get(unit)
        if measure is None:
            _make_room(self.measures)
            measure = self.measures[unit] = self._resolve(unit, ())
        return measure

    def _find_conversion(self, unit: str, to: str) -> tuple[int, int, int]:
        """Return integers such that `(amount * factor + shift) / divisor` converts."""
        conversion = self._conversions.get((unit, to))
        if conversion is not None:
            return conversion
        source, target = self.measure(unit), self.measure(to)
        if source.dimension != target.dimension:
            msg = f"`{unit}` does not convert to `{to}`: one is in `{source.base}`, the other in `{target.base}`"
            raise UnitMismatch(msg, unit=unit, to=to)
        factor, shift = source.scale / target.scale, (source.offset - target.offset) / target.scale
        # One divisor for both, so that a conversion is integer arithmetic with a single division at its end.
        divisor = factor.denominator * shift.denominator
        _make_room(self._conversions)
        conversion = self._conversions[unit, to] = int(factor * divisor), int(shift * divisor), divisor
        return conversion

    def _resolve(self, unit: str, seen: tuple[str, ...]) -> Measure:
        """Resolve a unit: an alias, a currency, a sign, a physical unit or a product; else one with its case folded."""
        if unit in seen:
            msg = f"unit aliases in a circle: {' = '.join(f'`{name}`' for name in (*seen, unit))}"
            raise UnknownUnit(msg, unit=unit)
        seen = (*seen, unit)
        if unit in self.aliases:
            return self._resolve_amount(self.aliases[unit], seen)
        worth = self.currencies and self.currencies.find_worth(unit)
        if worth and self.currencies:
            return Measure(worth, ((self.currencies.base, Fraction(1)),))
        if unit in SIGNS:
            return self._resolve(SIGNS[unit], seen)
        measure = find_physical(unit) or self._resolve_product(unit, seen)
        # Case is folded last: `Mb` and `MB` are different units, and so are `mW` and `MW`.
        if measure is None and (respelled := self._folded.get(fold(unit), unit)) != unit:
            measure = self._resolve(respelled, seen)
        return measure or self._refuse(unit)

    def _resolve_amount(self, target: str, seen: tuple[str, ...]) -> Measure:
        match = _AFTER.fullmatch(target)
        if not match:
            return self._resolve(target, seen)
        measure = self._resolve(match["unit"], seen)
        return Measure(measure.scale * Fraction(match["amount"]), measure.dimension, measure.offset)

    def _resolve_product(self, unit: str, seen: tuple[str, ...]) -> Measure | None:
        parts = [part for part in _SIGN.split(unit) if part] if len(unit) <= _LONGEST and _UNIT.fullmatch(unit) else []
        product, sign = ONE, 1
        for part in parts:
            factor = None if part == "per" else re.fullmatch(_FACTOR, part)
            if not factor:
                sign = 1 if part in "*·" else -1  # a slash, or `per`
                continue
            if factor["word"] == unit:  # a single word, which `_resolve` has looked up already
                return None
            power = Fraction({"²": "2", "³": "3"}.get(factor["high"], factor["power"] or "1"))
            product = product.multiply(self._resolve(factor["word"], seen), sign * power)
        return product if parts else None

    def _refuse(self, unit: str) -> NoReturn:
        hint = did_you_mean(unit, (*self.aliases, *(self.currencies or ())))
        if not hint and len(unit) == 3 and unit.isupper():  # before units of that sound: `EUR` is no `eu`
            hint = f"; if it is a currency, give the ontology a table [currencies] with rates = {{ {unit} = 1.08 }}"
        hint = hint or suggest_physical(unit)
        msg = f"unknown unit `{unit}`{hint}"
        raise UnknownUnit(msg, unit=unit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Units) and (self.aliases, self.currencies) == (other.aliases, other.currencies)

    def __hash__(self) -> int:
        return hash((frozenset(self.aliases.items()), self.currencies))


def _make_room(memo: dict[Any, Any]) -> None:
    if len(memo) >= CACHED:
        memo.clear()


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _divide(numerator: int, denominator: int) -> int | float:
    whole, rest = divmod(numerator, denominator)
    if not rest and INT_MIN <= whole <= INT_MAX:
        return whole
    try:
        return numerator / denominator
    except OverflowError:
        msg = "the converted amount is beyond the range of numbers"
        raise OntologyError(msg) from None


@cache
def _load_registry() -> Any:
    import pint

    return pint.UnitRegistry(non_int_type=Fraction)


@lru_cache(maxsize=CACHED)
def find_physical(word: str) -> Measure | None:
    """Return the physical unit of that name; words only, since pint would evaluate anything else."""
    import pint

    if not _PLAIN.fullmatch(word):
        return None
    registry = _load_registry()
    # Three points of the conversion: two give scale and offset, the third shows whether it is a straight line at all.
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
def suggest_physical(word: str) -> str:
    """Return the end of an error's text for a word that is no unit."""
    if not _PLAIN.fullmatch(word):
        return ""
    words = (*_load_registry(), *COMMON)
    if word in words:
        return "; its scale is logarithmic, and such units are not converted"
    for respelled in (word.upper(), word.lower(), word.capitalize()):
        if respelled != word and find_physical(respelled):
            return f"; did you mean `{respelled}`?"
    return did_you_mean(word, words)
