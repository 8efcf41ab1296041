"""`tidings compile` and every command that loads subscriptions: columns of parameters, and the bar on a terminal."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.samples import Terminal, write_lines

from tidings.cli import render
from tidings.matcher.loading import subscription_input


@pytest.fixture
def columns(tmp_path):
    table = pa.table({"id": ["cheap", "ford"], "make": [None, "ford"], "price_to": [5000, 9000]})
    pq.write_table(table, tmp_path / "columns.parquet")
    return tmp_path / "columns.parquet"


def test_parquet_with_a_column_for_each_parameter_is_compiled(tidings, columns, tmp_path):
    done = tidings("compile", "-s", columns, "-o", "snapshot")
    assert "2 subscriptions in `snapshot`" in done.err
    write_lines(tmp_path / "ads.jsonl", [{"make": "ford", "price": 8500}, {"make": "audi", "price": 100}])
    outcome = tidings("match", "--snapshot", "snapshot", "-e", "ads.jsonl")
    assert outcome.pairs == {(0, "ford"), (1, "cheap")}
    assert tidings("match", "-s", columns, "-e", "ads.jsonl").pairs == outcome.pairs


def test_rows_that_are_refused_are_named(tidings, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "price_from": [1, 9, 1], "price_to": [2, 3, 2]})
    pq.write_table(table, tmp_path / "columns.parquet")
    done = tidings("compile", "-s", "columns.parquet", "-o", "snapshot")
    assert done.code == 1
    assert "1 of 3 subscriptions" in done.err
    assert "row 2, `b`: `price`: the low end of the range is above its high end" in done.err
    assert tidings("compile", "-s", "columns.parquet", "-o", "snapshot", "--skip-bad").code == 0


def test_ids_that_stand_twice_are_counted(tidings, tmp_path):
    pq.write_table(pa.table({"id": ["a", "a"], "n": [1, 2]}), tmp_path / "columns.parquet")
    assert "1 ids stand more than once" in tidings("compile", "-s", "columns.parquet", "-o", "snapshot").err


def test_a_file_is_indexed_once_however_long_it_is(tidings, tmp_path, monkeypatch):
    from tidings.matcher.matcher import Matcher

    calls, enter_rows = [], Matcher.enter_rows
    monkeypatch.setattr(
        Matcher, "enter_rows", lambda *arguments, **options: calls.append(1) or enter_rows(*arguments, **options)
    )
    write_lines(tmp_path / "subs.jsonl", [{"id": str(n), "filter": f"n = {n}"} for n in range(10_000)])
    assert "10,000 subscriptions" in tidings("compile", "-s", "subs.jsonl", "-o", "snapshot").err
    assert len(calls) == 1


# The bar -----------------------------------------------------------------------------------------


class ThreeBatches:
    """Three batches of a file."""

    share = None

    def __iter__(self):
        for at in range(3):
            self.share = (at + 1) / 3
            yield ["row"] * 100


def show_bar(monkeypatch, *, quiet=False):
    """Read and parse three batches with a bar; return the words that it had, one after the other, and the screen."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    words = []
    file = ThreeBatches()
    with render.show_loading(file, quiet=quiet) as loading:
        if isinstance(loading, render.LoadBar):
            update = loading.bar.update
            loading.bar.update = lambda task, **new: (
                words.append((new["description"], new["rows"])),
                update(task, **new),
            )
        rows = [row for batch in loading.read(file) for row in batch]
        list(subscription_input.WatchedSubscriptions([(row, row, "text") for row in rows], loading.watch))
    return words, screen.getvalue()


def test_a_bar_tells_what_is_read_parsed_and_indexed(monkeypatch):
    words, screen = show_bar(monkeypatch)
    stages = list(dict.fromkeys(doing for doing, _ in words))
    assert stages == ["reading subscriptions", "indexing", "parsing"]
    assert words[-1] == ("indexing", "300 rows")
    assert words[2][1].startswith("300 rows, ")
    assert words[2][1].endswith(" a second")
    assert "indexing" in screen


def test_no_bar_where_nothing_but_json_is_asked_for(monkeypatch):
    assert show_bar(monkeypatch, quiet=True) == ([], "")


def test_the_command_is_quiet_with_json(tidings, columns, monkeypatch):
    asked = []
    loading = render.show_loading
    monkeypatch.setattr(
        render, "show_loading", lambda file, *, quiet: asked.append(quiet) or loading(file, quiet=quiet)
    )
    tidings("compile", "-s", columns, "-o", "snapshot", "--json")
    tidings("compile", "-s", columns, "-o", "snapshot")
    assert asked == [True, False]


def test_watched_subscriptions_tell_now_and_then():
    progress = []
    subscriptions = [(n, "a = 1", "text") for n in range(2500)]
    assert (
        list(subscription_input.WatchedSubscriptions(subscriptions, lambda done, total: progress.append((done, total))))
        == subscriptions
    )
    assert progress == [(0, 2500), (1000, 2500), (2000, 2500), (2500, 2500)]
