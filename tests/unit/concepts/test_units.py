"""Units: one number for one amount, exactly."""

import pickle

import pytest

from tidings.concepts import Currencies, Units
from tidings.errors import OntologyError, UnitMismatch, UnknownUnit

UNITS = Units(
    {"units:$": "USD", "G": "GB", "crate": "12 kg", "square feet": "foot^2", "buck": "units:$"},
    Currencies("USD", {"EUR": 1.08, "JPY": 0.0066}),
)


@pytest.mark.parametrize(
    ("amount", "unit", "to", "expected"),
    [
        (40, "GB", "MB", 40_000),
        (12, "inch", "foot", 1),
        (1, "ft", "in", 12),
        (20, "degC", "kelvin", 293.15),
        (20, "°C", "°F", 68),
        (5, "years", "s", 157_788_000),
        (90, "km/h", "m/s", 25),
        (60, "miles per hour", "km/h", 96.56064),
        (2, "m²", "cm^2", 20_000),
        (2, "m**2", "cm·cm", 20_000),
        (50, "%", "dimensionless", 0.5),
        (450, "EUR", "USD", 486),
        (450, "€", "$", 486),
        (54, "buck", "EUR", 50),
        (5, "eur", "USD", 5.4),
        (1, "USD/kg", "USD/crate", 12),
        (1000, "square feet", "m^2", 92.90304),
        (3, "G", "gigabyte", 3),
        (2**60, "byte", "bit", float(2**63)),
        (2**60 - 1, "byte", "bit", 2**63 - 8),
    ],
)
def test_amount_converts(amount, unit, to, expected):
    converted_amount = UNITS.convert(amount, unit, to=to)
    assert converted_amount == expected
    assert type(converted_amount) is type(expected)


def test_same_unit_returns_the_amount_as_it_is():
    assert UNITS.convert(3, "parsnip", to="parsnip") == 3
    assert UNITS.convert(3, "units:$", to="USD") == 3
    assert type(UNITS.convert(3.0, "$", to="USD")) is float


@pytest.mark.parametrize(
    ("unit", "hint"),
    [
        ("furlng", "unknown unit `furlng`; did you mean `furlong`"),
        ("gb", "did you mean `GB`"),
        ("KG", "did you mean `kg`"),
        ("EURO", "did you mean `EUR`"),
        ("CHF", r"if it is a currency, give the ontology a table \[currencies\]"),
        ("dBm", "logarithmic"),
        ("9**9**9**9", "unknown unit"),
        ("m*", "unknown unit"),
        ("", "unknown unit ``"),
        ("__class__", "unknown unit"),
        ("m" * 200, "unknown unit"),
        ("kg m", "unknown unit"),
        ("km/furlng", "unknown unit `furlng`"),
    ],
)
def test_unknown_unit_is_refused_with_the_nearest(unit, hint):
    with pytest.raises(UnknownUnit, match=hint):
        UNITS.convert(1, unit, to="m")


def test_units_of_different_things_are_refused_by_name():
    with pytest.raises(UnitMismatch, match=r"`kg` does not convert to `m`: one is in `kilogram`, the other in `meter`"):
        UNITS.convert(1, "kg", to="m")
    with pytest.raises(UnitMismatch, match="`EUR` does not convert to `GB`"):
        UNITS.convert(1, "EUR", to="GB")


def test_amount_beyond_all_numbers_is_refused():
    with pytest.raises(OntologyError, match="beyond the range of numbers"):
        UNITS.convert(1e308, "km", to="mm")


def test_aliases_in_a_circle_are_told():
    with pytest.raises(UnknownUnit, match="in a circle: `a` = `b` = `a`"):
        Units({"a": "b", "b": "a"}).measure("a")


@pytest.mark.parametrize(
    ("unit", "base"),
    [
        ("GB", "bit"),
        ("km", "meter"),
        ("degC", "kelvin"),
        ("litre", "meter^3"),
        ("mph", "meter/second"),
        ("EUR", "USD"),
        ("EUR/lb", "USD/kilogram"),
        ("Hz", "second^-1"),
        ("percent", "dimensionless"),
    ],
)
def test_base_unit_is_a_unit_of_its_own(unit, base):
    assert UNITS.base(unit) == base
    assert UNITS.base(base) == base


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("450 EUR", (450, "EUR")),
        ("40GB", (40, "GB")),
        ("$ 450", (450, "USD")),
        ("$450.50", (450.5, "USD")),
        ("EUR 450", (450, "EUR")),
        (" -5 °C ", (-5, "degC")),
        ("1.5e3 m/s", (1500.0, "m/s")),
        ("1200 square feet", (1200, "foot^2")),
        ("units:$ 3", (3, "USD")),
        ("3 wibbles", (3, "wibbles")),
        ("450", None),
        ("1e5", None),
        ("EUR", None),
        ("A4", None),
        ("route 66", None),
        ("12 Main Street", None),
        ("2020-01-01", None),
        ("10.0.0.1", None),
        ("1,000 EUR", None),
        ("1e999 m", None),
        ("", None),
        ("nan m", None),
    ],
)
def test_text_reads_as_amount_and_unit(text, expected):
    assert UNITS.read(text) == expected


def test_signs_and_aliases_of_the_user_go_first():
    units = Units({"$": "CAD"}, Currencies("CAD", {"USD": 1.37}))
    assert units.convert(5, "$", to="CAD") == 5
    assert units.read("$5") == (5, "CAD")


def test_units_pickle_and_compare_by_content():
    again = pickle.loads(pickle.dumps(UNITS))
    assert again == UNITS
    assert hash(again) == hash(UNITS)
    assert again.convert(450, "EUR", to="USD") == 486
    assert Units() != UNITS


def test_what_is_remembered_stays_bounded():
    units = Units()
    for power in range(1, 10):
        for unit in ("m", "s", "kg", "A", "K"):
            units.measure(f"{unit}^{power}")
    assert len(units.measures) <= 4096
