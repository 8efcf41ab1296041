"""Reports on an ontology: what a name means (`tidings concept show`), whether a file has mistakes (`check`).

Both return plain dictionaries, ready for JSON; `show_text` and `check_text` return the same as lines of text.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from tidings.concepts.mistakes import split_mistakes
from tidings.concepts.ontology import Ontology
from tidings.concepts.spelling import did_you_mean, join_first
from tidings.errors import TidingsError, UnknownConcept

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tidings.concepts.taxonomies.tree import Tree

PATHS = 10
"""Paths from a root that are shown at most: with several parents their number multiplies."""

LISTED = 50
"""Children or synonyms that a line of text lists at most; the dictionaries hold all."""


def show(ontology: Ontology, name: str) -> list[dict[str, Any]]:
    """Describe everything a name may mean: concepts of any tree, and attributes; an unknown name is refused."""
    entries = [
        _describe_concept(tree, each, label)
        for label, tree in ontology.trees.items()
        for each in (tree.candidates(name) if name in tree else ())
    ]
    if _is_attribute(ontology, name):
        entries.append(_describe_attribute(ontology, ontology.attribute(name)))
    if not entries:
        words = (tree.spellings() for tree in ontology.trees.values())
        names = chain(*words, ontology.attributes, ontology.derived, *ontology.attribute_trees.values())
        msg = f"no concept or attribute is called `{name}`{did_you_mean(name, names)}"
        raise UnknownConcept(msg, name=name)
    return entries


def show_text(ontology: Ontology, name: str) -> str:
    """Return the same as text."""
    return "\n\n".join("\n".join(_format_entry(each)) for each in show(ontology, name))


def check(path: str | Path) -> dict[str, Any]:
    """Load a file and count what is in it, or list its mistakes: `ok`, `trees`, ..., `mistakes`."""
    try:
        ontology = Ontology.load(path)
    except TidingsError as mistake:
        return {"ok": False, "mistakes": list(split_mistakes(mistake))}
    return {
        "ok": True,
        "trees": {name: _count_tree(tree) for name, tree in ontology.trees.items()},
        "attribute_trees": {name: _count_tree(tree) for name, tree in ontology.attribute_trees.items()},
        "attributes": len(ontology.attributes),
        "units": len(ontology.units.aliases),
        "currencies": len([*(ontology.units.currencies or ())]),
        "derived": list(ontology.derived),
        "mistakes": [],
    }


def check_text(path: str | Path) -> str:
    """Return the same as text."""
    report = check(path)
    if not report["ok"]:
        return "\n".join(report["mistakes"])
    lines = []
    for section in ("trees", "attribute_trees"):
        for name, counts in report[section].items():
            counts_text = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in counts.items() if count)
            lines.append(f"{section.replace('_', ' ')[:-1]} {name}: {counts_text}")
    lines += [f"{key}: {report[key]:,}" for key in ("attributes", "units", "currencies") if report[key]]
    if report["derived"]:
        lines.append(f"derived: {', '.join(report['derived'])}")
    return "\n".join(lines) or "an empty ontology"


def list_paths(tree: Tree, name: str) -> list[list[str]]:
    """Return the paths from a root down to the concept, at most `PATHS` of them."""
    complete: list[list[str]] = []
    stack = [[tree.require(name)]]
    # Stops at the limit: where concepts at every level have several parents, there are more paths than one can list.
    while stack and len(complete) < PATHS:
        path = stack.pop()
        above = tree.parents(path[0])
        if not above:
            complete.append(path)
        stack.extend([parent, *path] for parent in reversed(above))
    return complete


def _describe_concept(tree: Tree, name: str, label: str) -> dict[str, Any]:
    ranges = tree.ranges(name)
    return {
        "name": name,
        "tree": label,
        "root": tree.root(name),
        "paths": list_paths(tree, name),
        "children": list(tree.children(name)),
        "synonyms": list(tree.synonyms(name)),
        "ranges": [list(pair) for pair in ranges],
        "size": sum(high - low + 1 for low, high in ranges),
    }


def _is_attribute(ontology: Ontology, name: str) -> bool:
    own = ontology.attribute(name)
    if own in ontology.attributes or own in ontology.derived or len(ontology.sources(own)) > 1:
        return True
    return any(tree.has_spelling(own) for tree in ontology.attribute_trees.values())


def _describe_attribute(ontology: Ontology, name: str) -> dict[str, Any]:
    unit = ontology.unit(name)
    derived = ontology.derived.get(name)
    entry = {
        "attribute": name,
        "domain": ontology.domain(name),
        "root": ontology.root(name),
        "sources": list(ontology.sources(name)),
        "unit": unit.unit if unit else None,
        "unit_from": unit.unit_from if unit else None,
        "derived": derived.text if derived else None,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _format_entry(entry: dict[str, Any]) -> Iterator[str]:
    if "attribute" in entry:
        yield f"attribute {entry['attribute']}: {entry['domain']}"
        yield f"  heard from: {', '.join(entry['sources'])}"
        yield from (f"  {key}: {entry[key]}" for key in ("unit", "unit_from", "derived") if key in entry)
        return
    yield f"{entry['name']} (tree {entry['tree']})"
    yield from (f"  path: {' > '.join(path)}" for path in entry["paths"])
    for key in ("children", "synonyms"):
        if entry[key]:
            yield f"  {key}: {join_first(entry[key], LISTED)}"
    yield f"  numbers: {', '.join(f'{low}..{high}' for low, high in entry['ranges'])}"
    yield f"  concepts at or below: {entry['size']:,}"


def _count_tree(tree: Tree) -> dict[str, int]:
    return {
        "concepts": len(tree),
        "roots": len(tree.roots),
        "with_several_parents": sum(len(tree.parents(name)) > 1 for name in tree.names),
        "spellings": sum(1 for _ in tree.spellings()),
        "shared_spellings": len(tree.shared_spellings()),
        "dropped": len(tree.dropped),
    }
