"""SKOS vocabularies and RDF class trees, in any form rdflib reads (RDF/XML, Turtle, N-Triples, JSON-LD).

A concept lies under its `skos:broader` (or above its `skos:narrower`), a class under its
`rdfs:subClassOf`. A concept's own name is its preferred label in the language asked for; where several
concepts share that label, the last part of their identifier is added in parentheses. The identifier and
all labels of all languages are further spellings.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tidings.concepts.taxonomies.tree_draft import Draft, Source
from tidings.concepts.text_files import get_suffix
from tidings.errors import MissingExtra, OntologyError

if TYPE_CHECKING:
    from collections.abc import Iterator


BASE = "tree://here/"
"""Relative identifiers are read against this, and shown without it."""

_PARSERS = {".ttl": "turtle", ".nt": "nt", ".n3": "n3", ".jsonld": "json-ld", ".json": "json-ld"}


def read(source: Source) -> Draft:
    """Read a vocabulary."""
    graph = _parse_graph(source)
    draft = Draft(source.label)
    concepts = sorted(_list_concepts(graph))
    labels = {concept: _list_labels(graph, concept, source.language) for concept in concepts}
    names = _choose_names(labels)
    for concept in concepts:
        draft.define(names[concept])
        draft.spell(names[concept], [*labels[concept], _strip_base(concept), _get_last_part(concept)])
    for child, parent in sorted(_list_links(graph)):
        draft.link(names.get(child, _strip_base(child)), names.get(parent, _strip_base(parent)))
    return draft


def _parse_graph(source: Source) -> Any:
    try:
        import rdflib
    except ImportError as missing:
        msg = f"{source.label}: reading RDF needs rdflib; pip install 'tidings[rdf]'"
        raise MissingExtra(msg) from missing
    graph = rdflib.Graph()
    try:
        graph.parse(data=source.text, format=_choose_parser(source), publicID=BASE)
    except Exception as problem:  # rdflib's parsers each raise their own kinds
        msg = f"{source.label}: {problem}"
        raise OntologyError(msg) from problem
    return graph


def _choose_parser(source: Source) -> str:
    name = _PARSERS.get(get_suffix(source.path)) if source.path else None
    return name or ("xml" if source.text.lstrip().startswith("<?xml") or "<rdf:RDF" in source.text else "turtle")


def _list_concepts(graph: Any) -> Iterator[str]:
    from rdflib import OWL, RDF, RDFS, SKOS, URIRef

    for kind in (SKOS.Concept, OWL.Class, RDFS.Class):
        yield from {str(concept) for concept in graph.subjects(RDF.type, kind) if isinstance(concept, URIRef)}


def _list_links(graph: Any) -> Iterator[tuple[str, str]]:
    from rdflib import RDFS, SKOS, URIRef

    pairs = [
        *graph.subject_objects(SKOS.broader),
        *((child, parent) for parent, child in graph.subject_objects(SKOS.narrower)),
        *graph.subject_objects(RDFS.subClassOf),
    ]
    for child, parent in pairs:
        if isinstance(child, URIRef) and isinstance(parent, URIRef):
            yield str(child), str(parent)


def _list_labels(graph: Any, concept: str, language: str) -> list[str]:
    """Return the labels, the one to be called by first."""
    from rdflib import RDFS, SKOS, URIRef

    ranked: list[tuple[int, str, str]] = []
    for rank, kind in enumerate((SKOS.prefLabel, RDFS.label, SKOS.altLabel, SKOS.hiddenLabel)):
        for label in graph.objects(URIRef(concept), kind):
            code = (label.language or "").lower()
            # In each kind of label: the language asked for, then labels of no language, then all others.
            place = 0 if code.split("-")[0] == language.lower() else 1 if not code else 2
            ranked.append((10 * rank + place, code, str(label).strip()))
    return [label for _, _, label in sorted(ranked) if label]


def _choose_names(labels: dict[str, list[str]]) -> dict[str, str]:
    """Return each concept's own name: its first label, with the end of its identifier where others share that."""
    names = {concept: (words[0] if words else _strip_base(concept)) for concept, words in labels.items()}
    count = Counter(names.values())
    return {
        concept: name if count[name] == 1 else f"{name} ({_get_last_part(concept)})" for concept, name in names.items()
    }


def _strip_base(concept: str) -> str:
    return concept.removeprefix(BASE)


def _get_last_part(concept: str) -> str:
    return _strip_base(concept).rstrip("/#").rpartition("#")[2].rpartition("/")[2]
