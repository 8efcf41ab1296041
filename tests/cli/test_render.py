"""Small tables: drawn on a terminal, plain columns in a pipe, and never taken for markup."""

import sys

from tests.cli.samples import Terminal

from tidings.cli import render
from tidings.matcher.plan import Sheet

SHEET = Sheet(
    "[b]paths[/b]", ("found by", "rows"), (("make", "12"), ("[red]", "3,456")), frozenset({1}), ("and 2 more",)
)


def test_a_pipe_gets_plain_columns(capsys):
    render.print_sheet(SHEET)
    assert capsys.readouterr().out == f"{SHEET}\n"
    assert str(SHEET).splitlines()[1:] == [
        "  found by   rows",
        "  make         12",
        "  [red]     3,456",
        "  and 2 more",
    ]


def test_a_terminal_gets_the_same_words(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    render.print_sheet(SHEET)
    shown = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert [line.split() for line in shown] == [
        ["[b]paths[/b]"],
        ["found", "by", "rows"],
        ["make", "12"],
        ["[red]", "3,456"],
        ["and", "2", "more"],
    ]


def test_a_sheet_without_rows_is_its_title_there_too(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    render.print_sheet(Sheet("waiting: 3", (), ()))
    assert "waiting: 3" in screen.getvalue()
