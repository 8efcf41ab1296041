"""`tidings parse`: a filter written in another notation, as a tree or in normal form."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render as show
from tidings.cli.match.subscription_origin import load_vocabulary
from tidings.cli.options import Notation, ParseOutput
from tidings.errors import FileError, FilterError, TidingsError
from tidings.lang import parse, render
from tidings.model import And, Has, Not, Or, Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.errors import FilterWarning
    from tidings.model import Filter, Schema


@dataclass(frozen=True, slots=True)
class Parsing:
    """The options of `parse`: the notation of the filter, what is printed, and the files of its vocabulary."""

    notation: Notation
    output: ParseOutput
    schema: Path | None
    ontology: Path | None
    regions: Path | None
    as_json: bool


def run(source: str, task: Parsing) -> None:
    """Parse a filter and print it; with `--json` a refusal is JSON on standard output too."""
    vocabulary = load_vocabulary(task.schema, task.ontology, task.regions)
    try:
        warnings: list[FilterWarning] = []
        keywords = vocabulary.to_keywords()
        tree = parse(_read_source(source), notation=task.notation.value, warnings=warnings, **keywords)
        text = _render(tree, task.output, vocabulary.schema)
    except TidingsError as problem:
        if task.as_json:
            show.write_json({"error": str(problem), "mistakes": _list_mistakes(problem)})
        raise
    for warning in warnings:
        show.warn(str(warning))
    if task.as_json:
        answer = {"filter": json.loads(render(tree, notation="json")), "to": task.output.value, "rendered": text}
        show.write_json({**answer, "warnings": list(map(_warning_to_dict, warnings))} if warnings else answer)
    else:
        show.write(text)


def _warning_to_dict(warning: FilterWarning) -> dict[str, Any]:
    return {"message": str(warning).partition("\n")[0], "start": warning.start, "end": warning.end}


def _read_source(source: str) -> str:
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


def _list_mistakes(problem: TidingsError) -> list[dict[str, Any]]:
    return [asdict(mistake) for mistake in problem.mistakes] if isinstance(problem, FilterError) else []


def _render(tree: Filter, output: ParseOutput, schema: Schema | None) -> str:
    match output:
        case ParseOutput.tree:
            return "\n".join(draw_tree(tree))
        case ParseOutput.normal:
            from tidings.algebra import normal_form

            return render(normal_form(tree))
        case ParseOutput.url:
            return render(tree, notation="url", schema=schema)
    return render(tree, notation=output.value)


def draw_tree(tree: Filter) -> Iterator[str]:
    """Yield the lines of the filter drawn as a tree, with a test on each leaf."""
    label, parts = _split_node(tree)
    yield label
    for at, part in enumerate(parts, 1):
        first, below = ("└─ ", "   ") if at == len(parts) else ("├─ ", "│  ")
        for line in draw_tree(part):
            yield first + line
            first = below


def _split_node(tree: Filter) -> tuple[str, tuple[Filter, ...]]:
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
