"""Daily temperatures of 324 cities, cleaned and counted: `python -m benchmarks.papers.p_topss.heat`.

The archive is the paper's own (section 6.2). It is read where `TIDINGS_DATA` or `../shared/data` has it; nothing is
copied. Readings are in Fahrenheit and -99 where there is none. Each city becomes one series with an event for every
calendar day from its first to its last. A day without a reading is an event all the same, its temperature not a
number: it is not hot, so it breaks a run, and nothing is made up in its place.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidings.bench.workloads.real_data import VARIABLE, data_folder
from tidings.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


FOLDER, READINGS, STATIONS = "dayton-city-temperatures", "daily_avg_temperature.parquet", "stations.csv"

MISSING_F = -99.0
"""What the archive writes where there is no reading."""

FIRST_DAY = np.datetime64("1995-01-01")
"""The archive begins here; the years 200 and 201 of some lines are typing errors."""

HOT, STEPS = 30.0, 5
"""The pattern: so many days in a row above so many degrees Celsius."""

TEXT = "hot = temp > 30\nhot, hot, hot, hot, hot"
"""The paper's subscription, for the series of one city."""


@dataclass(frozen=True, slots=True, eq=False)
class CityTemperatures:
    """One city's days in order, without gaps: Celsius, not a number where there is no reading."""

    code: str
    group: str
    first: np.datetime64
    celsius: NDArray[np.float64]

    @property
    def hot(self) -> NDArray[np.bool_]:
        """Which days are hot; a day without a reading is not."""
        return self.celsius > HOT

    def table(self) -> pa.Table:
        """Return the days as events: `id`, `time`, `city` and `temp`, null where there is no reading."""
        days = np.arange(len(self.celsius))
        times = pa.array((self.first + days).astype("datetime64[s]")).cast(pa.timestamp("s", "UTC"))
        name = pa.array([self.code]).dictionary_encode().take(pa.array(np.zeros(len(days), np.int32)))
        return pa.table({"id": days, "time": times, "city": name, "temp": pa.array(self.celsius, from_pandas=True)})


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What was dropped, and what a series has in its place."""

    rows: int
    no_date: int
    impossible_year: int
    repeated: int
    repeated_missing: int
    repeated_other: int
    missing: int
    absent: int
    days: int

    def format_lines(self) -> list[str]:
        """Return a line for each count."""
        words = {
            "rows read": self.rows,
            "dropped: no date": self.no_date,
            "dropped: before 1995 (years 200 and 201)": self.impossible_year,
            "dropped: the same day of a city again, same reading": self.repeated,
            "dropped: the same day again without a reading, where another row has one": self.repeated_missing,
            "dropped: the same day again with another reading (the first is kept)": self.repeated_other,
            "kept: days whose reading is missing (-99)": self.missing,
            "added: days that no row has, as days without a reading": self.absent,
            "days": self.days,
        }
        return [f"{count:>9,}  {name}" for name, count in words.items()]


def is_present() -> bool:
    """Tell whether the archive is available."""
    folder = data_folder()
    return folder is not None and (folder / FOLDER / READINGS).exists()


def read() -> tuple[list[CityTemperatures], Cleaning]:
    """Return the cities, in the order of their codes, and what cleaning did."""
    folder = data_folder()
    if folder is None or not is_present():
        msg = f"there is no `{FOLDER}/{READINGS}`; set {VARIABLE} to the folder that has it"
        raise FileError(msg)
    rows = pq.read_table(folder / FOLDER / READINGS).combine_chunks()
    return clean_rows(rows, _read_groups(folder / FOLDER / STATIONS))


def clean_rows(rows: pa.Table, groups: dict[str, str]) -> tuple[list[CityTemperatures], Cleaning]:
    """Clean rows of `code`, `date` and `avg_f`; `groups` are `US` or `INTL`, by code."""
    dated = rows.filter(pc.is_valid(rows["date"]))
    codes = pc.cast(dated["code"], pa.string()).combine_chunks().dictionary_encode()
    owner = codes.indices.to_numpy().astype(np.int64)
    days = dated["date"].to_numpy().astype("datetime64[D]")
    degrees = dated["avg_f"].to_numpy().astype(np.float64)
    real = days >= FIRST_DAY
    days_left, again = _keep_single(owner[real], days[real], degrees[real])
    owner, days, degrees = (values[real][days_left] for values in (owner, days, degrees))
    celsius = np.where(degrees == MISSING_F, np.nan, (degrees - 32) * 5 / 9)
    names = codes.dictionary.to_pylist()
    cities = [_build_city(names[place], groups, days[mine], celsius[mine]) for place, mine in _find_runs(owner)]
    length = sum(len(city.celsius) for city in cities)
    missing = int(np.isnan(celsius).sum())
    counts = (rows.num_rows - dated.num_rows, int((~real).sum()), *again, missing, length - len(days_left), length)
    return sorted(cities, key=lambda city: city.code), Cleaning(rows.num_rows, *counts)


def _keep_single(
    owner: NDArray[np.int64], days: NDArray[np.datetime64], degrees: NDArray[np.float64]
) -> tuple[NDArray[np.int64], tuple[int, int, int]]:
    """Return one row for each day of each city, in order, and how many others were the same, missing or different."""
    order = np.lexsort((np.arange(len(days)), degrees == MISSING_F, days, owner))  # readings before missing ones
    mine, day, value = owner[order], days[order], degrees[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (mine[1:] != mine[:-1]) | (day[1:] != day[:-1])
    stands = value[np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))]
    other = ~first & (value != stands)
    missing = other & (value == MISSING_F)
    counts = (int((~first & ~other).sum()), int(missing.sum()), int((other & ~missing).sum()))
    return order[first], counts


def _find_runs(owner: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """Return for each city its number and its rows."""
    ends = [*(np.flatnonzero(np.diff(owner)) + 1).tolist(), len(owner)]
    return [(int(owner[start]), slice(start, end)) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _build_city(
    code: str, groups: dict[str, str], days: NDArray[np.datetime64], celsius: NDArray[np.float64]
) -> CityTemperatures:
    places = (days - days[0]).astype(np.int64)
    whole = np.full(int(places[-1]) + 1, np.nan)
    whole[places] = celsius
    return CityTemperatures(code, groups.get(code, "INTL"), days[0], whole)


def _read_groups(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["code"]: row["group"] for row in csv.DictReader(lines)}


# Counting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hot:
    """How hot the cities were: days, longest possible runs of at least five, and where the pattern is reported."""

    days: int
    runs: int
    overlap: int
    restart: int
    cities: int


def count_lengths(hot: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each day how many hot days in a row end there."""
    places = np.arange(1, len(hot) + 1)
    return places - np.maximum.accumulate(np.where(hot, 0, places))


def count_hot(cities: Sequence[CityTemperatures]) -> Hot:
    """Count hot days and matches by the lengths of runs: a check that knows no pattern."""
    totals = np.zeros(5, np.int64)
    for city in cities:
        run = count_lengths(city.hot)
        ends = run[np.append(run[1:] == 0, True)]
        matches = (run >= STEPS).sum()
        again = (run[run > 0] % STEPS == 0).sum()
        totals += (city.hot.sum(), (ends >= STEPS).sum(), matches, again, matches > 0)
    return Hot(*totals.tolist())


def main() -> None:
    """Print the numbers of cleaned rows and of hot days."""
    cities, cleaning = read()
    print("\n".join(cleaning.format_lines()))
    us = sum(city.group == "US" for city in cities)
    print(f"{len(cities)} cities, {us} of them in the US; {count_hot(cities)}")


if __name__ == "__main__":
    main()
