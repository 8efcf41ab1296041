"""`tidings parse`: a filter written in another notation, as a tree or in normal form."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tidings.cli import render as show
from tidings.cli.input_files import read_text
from tidings.cli.options import ParseInput, ParseOutput
from tidings.errors import FilterError, TidingsError
from tidings.lang import parse, render
from tidings.model import And, Has, Not, Or, Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidings.concepts import Vocabulary
    from tidings.errors import FilterWarning
    from tidings.model import Filter, Schema


def run(source: str, notation: ParseInput, output: ParseOutput, vocabulary: Vocabulary, *, as_json: bool) -> None:
    """Parse a filter and print it; with `--json` a refusal is JSON on standard output too."""
    try:
        warnings: list[FilterWarning] = []
        text = read_text("-", "standard input").rstrip("\r\n") if source == "-" else source
        tree = parse(text, notation=notation.value, warnings=warnings, **vocabulary.to_keywords())
        rendered = _render(tree, output, vocabulary.schema)
    except TidingsError as problem:
        if as_json:
            mistakes = [asdict(mistake) for mistake in problem.mistakes] if isinstance(problem, FilterError) else []
            show.write_json({"error": str(problem), "mistakes": mistakes})
        raise
    for warning in warnings:
        show.warn(str(warning))
    if not as_json:
        show.write(rendered)
        return
    answer = {"filter": json.loads(render(tree, notation="json")), "to": output.value, "rendered": rendered}
    details = [
        {"message": str(warning).partition("\n")[0], "start": warning.start, "end": warning.end} for warning in warnings
    ]
    show.write_json({**answer, "warnings": details} if warnings else answer)


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
    for number, part in enumerate(parts, 1):
        first, below = ("└─ ", "   ") if number == len(parts) else ("├─ ", "│  ")
        for line in draw_tree(part):
            yield first + line
            first = below


def _split_node(tree: Filter) -> tuple[str, tuple[Filter, ...]]:
    match tree:
        case And((_, *_) as parts) | Or((_, *_) as parts):
            return "and" if isinstance(tree, And) else "or", tuple(parts)
        case Not(part):
            return "not", (part,)
        case Test(condition=Has(inner)):
            # `items has (...)` without its parentheses: what is inside them hangs below.
            return render(tree).removesuffix(f"({render(inner)})").rstrip(), (inner,)
    return render(tree), ()
