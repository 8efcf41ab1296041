"""`tidings parse`: a filter in, the same filter out, in another notation, as a tree or in normal form."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tidings.cli import render as show
from tidings.cli.match.subscription_origin import surroundings
from tidings.cli.options import Shape
from tidings.errors import FileError, FilterError, TidingsError
from tidings.lang import parse, render
from tidings.model import And, Has, Not, Or, Test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidings.cli.options import Notation
    from tidings.errors import FilterWarning
    from tidings.model import Filter


def run(
    source: str,
    *,
    notation: Notation,
    shape: Shape,
    schema: Path | None,
    ontology: Path | None,
    regions: Path | None,
    as_json: bool,
) -> None:
    """Parse, and print what was asked for; with `--json` a refusal is JSON on standard output too."""
    known = surroundings(schema, ontology, regions)
    try:
        doubts: list[FilterWarning] = []
        tree = parse(_given(source), notation=notation.value, warnings=doubts, **known)
        shown = _shown(tree, shape, known)
    except TidingsError as problem:
        if as_json:
            show.out_json({"error": str(problem), "mistakes": _mistakes(problem)})
        raise
    for doubt in doubts:
        show.warning(str(doubt))
    if as_json:
        answer = {"filter": json.loads(render(tree, notation="json")), "to": shape.value, "rendered": shown}
        show.out_json({**answer, "warnings": _places(doubts)} if doubts else answer)
    else:
        show.out(shown)


def _places(doubts: list[FilterWarning]) -> list[dict[str, Any]]:
    return [{"message": str(one).partition("\n")[0], "start": one.start, "end": one.end} for one in doubts]


def _given(source: str) -> str:
    if source != "-":
        return source
    if sys.stdin is None:
        msg = "cannot read standard input: it is closed"
        raise FileError(msg)
    data = sys.stdin.buffer.read()
    try:
        return data.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as problem:
        msg = f"cannot read standard input: it is not UTF-8 text (byte {problem.start})"
        raise FileError(msg) from problem


def _mistakes(problem: TidingsError) -> list[dict[str, Any]]:
    return [asdict(mistake) for mistake in problem.mistakes] if isinstance(problem, FilterError) else []


def _shown(tree: Filter, shape: Shape, known: dict[str, Any]) -> str:
    match shape:
        case Shape.tree:
            return "\n".join(picture(tree))
        case Shape.normal:
            from tidings.algebra import normal_form

            return render(normal_form(tree))
        case Shape.url:
            return render(tree, notation="url", schema=known.get("schema"))
    return render(tree, notation=shape.value)


def picture(tree: Filter) -> Iterator[str]:
    """Yield the lines of the filter drawn as a tree, a test on each leaf."""
    head, parts = _node(tree)
    yield head
    for at, part in enumerate(parts, 1):
        first, below = ("└─ ", "   ") if at == len(parts) else ("├─ ", "│  ")
        for line in picture(part):
            yield first + line
            first = below


def _node(tree: Filter) -> tuple[str, tuple[Filter, ...]]:
    match tree:
        case And((_, *_) as parts):
            return "and", tuple(parts)
        case Or((_, *_) as parts):
            return "or", tuple(parts)
        case Not(part):
            return "not", (part,)
        case Test(condition=Has(inner)):
            # `items has (...)` without its parentheses: what is inside them hangs below.
            return render(tree).removesuffix(f"({render(inner)})").rstrip(), (inner,)
    return render(tree), ()
