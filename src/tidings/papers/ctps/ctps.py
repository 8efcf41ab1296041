"""CTPS: subscriptions as bits on the nodes of concept trees.

Zhang, Wang, Huang, Yung, "Concept Tree-Based Event Matching Algorithm in Publish/Subscribe Systems", 2022, sections 4
and 5 (Algorithms 1 to 9, and deletion).

Every node of an attribute tree (m1) or value tree (m2), every text (m3) and every cell of a grid of intervals (m4)
has a bit array of the subscriptions that name it. For a value of an event the arrays of its node and of all above
are joined by `or`, as are those of the names it goes by; what asks something of the root and is in neither dies.

Cost, for n subscriptions: to add or remove one O(its constraints); to match an event O(n/64) words for each of the
operands, which are height + 1 for each name and value, and up to T*T/4 cells for each number, plus O(n/T) compared
ends of what is still alive; memory O(n/8) bytes for each node or cell that has more than a few subscriptions.

It has no `not`, `!=`, text tests, ranges of text, places, ages, comparisons or arrays of records, and refuses them.

Corrected (docs/papers.md#ctps): roots that an event lacks (Algorithm 6 keeps their subscriptions); several names or
values under one root (each clears what the other found): the pairs of a root are joined before what asks dies; value
trees belong to the root that uses them (m2 is filled by value and read by attribute); ends are kept (Algorithm 5);
part D reads row y of column r (Algorithm 9, line 19); no domain is assumed; a filter that constrains a root twice has
a bit for each, and all must live; values that no tree knows; several parents. The totals of each tree and the `*` of
texts have become one array for each root, which says who asks.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.papers.ctps import clear_bits, match, set_bits
from tidings.papers.ctps.bit_rows import BitRows, Loading, Node
from tidings.papers.ctps.concept_roots import Root
from tidings.papers.ctps.concept_terms import Sort, Terms, pairs_of
from tidings.papers.ctps.gem import CELLS, Grids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.ctps.concept_terms import Row, Rows, Term

ROOM = 4096
"""Answers the kernel may give before it is asked to go on, at least."""


class Ctps:
    """Bit arrays on concept trees."""

    def __init__(self, ontology: Ontology, *, cells: int = CELLS) -> None:
        """Start without subscriptions; `cells` is the width T of the grids."""
        self._terms = Terms("ctps", ontology)
        self._cells = cells
        self._rows, self._grids = BitRows(), Grids(cells)
        self._roots: dict[TypedAttribute, Root] = {}
        self._order: list[Root] = []
        self._spots: list[Root | None] = []  # roots by their number
        self._free_spots: list[int] = []
        self._known: dict[TypedAttribute, tuple[int, int]] = {}  # a name's root, and its node's place
        self._nodes: list[Node | None] = []
        self._free_nodes: list[int] = []
        self._grid_roots: dict[int, tuple[Root, str]] = {}
        self._bits: dict[SubId, Any] = {}  # the bit of each subscription, or a tuple of tuples: rows of bits
        self._owner: list[Any] = []
        self._links: list[bytes] = []
        self._free: list[int] = []
        self._several: dict[int, tuple[int, int]] = {}  # a bit of several: its row's first bit, and how many live

    def compile_filter(self, tree: Filter) -> Rows:
        """Return the filter's rows of terms."""
        return self._terms.rows(tree)

    # Changing ----------------------------------------------------------------------------------

    def add_many(self, filters: Iterable[tuple[SubId, Rows]]) -> None:
        """Take compiled filters in (Algorithm 2); a known id is replaced."""
        latest = dict(filters)
        for id in self._bits.keys() & latest.keys():
            self.remove(id)
        self._widen(len(self._owner) - len(self._free) + sum(map(len, latest.values())))
        loading = Loading()
        for id, rows in latest.items():
            if len(rows) == 1 and len(parts := self._parts(rows[0])) == 1:
                self._bits[id] = self._part(id, parts[0], loading)
                continue
            taken = [tuple(self._part(id, part, loading) for part in self._parts(row)) for row in rows]
            self._several.update((bit, (bits[0], len(bits))) for bits in taken for bit in bits)
            self._bits[id] = tuple(taken)
        self._widen(len(self._owner))
        self._take(loading)

    def _widen(self, subscriptions: int) -> None:
        if self._rows.widen(subscriptions):
            self._grids.widen(self._rows.words * 64)
            for node in self._nodes:
                if node is not None:
                    node.settle(self._rows)
                    self._placed(node)

    def _placed(self, node: Node) -> None:
        """Tell the events' names where their node is now."""
        if node.home is node.root.names:
            self._known[node.key] = (node.root.at, node.place)

    def _parts(self, row: Row) -> list[Row]:
        """Divide a row so that no part constrains a root twice."""
        if len(row) < 2 or len({self._terms.root(term.name) for term in row}) == len(row):
            return [row]
        parts: list[dict[TypedAttribute, Term]] = []
        for term in row:
            root = self._terms.root(term.name)
            part = next((part for part in parts if root not in part), None)
            if part is None:
                parts.append({root: term})
            else:
                part[root] = term
        return [tuple(part.values()) for part in parts]

    def _part(self, id: SubId, part: Row, loading: Loading) -> int:
        """Give a part a bit, and note it where its terms lead."""
        if self._free:
            bit = self._free.pop()
            self._owner[bit] = id
        else:
            bit = len(self._owner)
            self._owner.append(id)
            self._links.append(b"")
        links = []
        for term in part:
            root = self._entered(term.name)
            loading.asking.setdefault(root, []).append(bit)
            if not root.alone:
                links.append(loading.note(root.names[term.name], bit))
            if term.sort is Sort.NUMBER:
                grid = root.grids.get(term.value.scale)
                if grid is None:
                    grid = root.grids[term.value.scale] = self._grids.new()
                    self._grid_roots[grid] = (root, term.value.scale)
                ids, spans = loading.spans.setdefault(grid, ([], []))
                ids.append(bit)
                spans.append(term.value)
                links.append(-1 - grid)
            else:
                links += [loading.note(node, bit) for node in self._value_nodes(root, term)]
        loading.bits.append(bit)
        self._links[bit] = array("i", links).tobytes()
        return bit

    def _entered(self, name: TypedAttribute) -> Root:
        """Find or make the root and node of a name (Algorithm 1, for what is asked)."""
        if name in self._known:
            root = self._spots[self._known[name][0]]
            assert root is not None
            return root
        top = self._terms.root(name)
        root = self._roots.get(top) or self._new_root(top, alone=self._terms.is_alone(name))
        self._known[name] = (root.at, 0 if root.alone else self._node(root, root.names, name).place)
        return root

    def _new_root(self, label: TypedAttribute, *, alone: bool) -> Root:
        if not self._free_spots:
            self._free_spots.append(len(self._spots))
            self._spots.append(None)
        at = self._free_spots.pop()
        root = self._roots[label] = self._spots[at] = Root(label, self._rows.new(), at, alone=alone, terms=self._terms)
        return root

    def _value_nodes(self, root: Root, term: Term) -> list[Node]:
        if term.sort is Sort.CONCEPT:
            tree, concept = term.value
            return [self._node(root, root.concepts.setdefault(tree, {}), concept)]
        if term.sort is Sort.TEXT:
            return [self._node(root, root.texts, text) for text in term.value]
        return [self._node(root, root.exists, None)]

    def _node(self, root: Root, home: dict[Any, Node], key: Any) -> Node:
        node = home.get(key)
        if node is None:
            node = home[key] = Node(root, home, key)
            if self._free_nodes:
                node.at = self._free_nodes.pop()
                self._nodes[node.at] = node
            else:
                node.at = len(self._nodes)
                self._nodes.append(node)
        return node

    def _take(self, loading: Loading) -> None:
        """Set all bits of a load."""
        for node in loading.touched:
            node.take(self._rows)
            self._placed(node)
        for grid, (ids, spans) in loading.spans.items():
            self._grids.add(grid, ids, spans, self._rows)
        for root, bits in loading.asking.items():
            set_bits(self._rows.bits[root.asked], np.array(bits, np.int64))
        set_bits(self._rows.bits[0], np.array(loading.bits, np.int64))
        self._settle()

    def _settle(self) -> None:
        """Forget remembered operands; grids come last, when few subscriptions are alive."""
        for root in self._roots.values():
            root.forget()
        self._order = sorted(self._roots.values(), key=lambda root: bool(root.grids))

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there: its bits are cleared where its terms lead, and may be used again."""
        found = self._bits.pop(id)
        for bit in (found,) if isinstance(found, int) else [bit for bits in found for bit in bits]:
            at = np.array([bit], np.int64)
            clear_bits(self._rows.bits[0], at)
            for link in array("i", self._links[bit]):
                self._unlink(link, bit, at)
            self._several.pop(bit, None)
            self._owner[bit], self._links[bit] = None, b""
            self._free.append(bit)
        self._settle()

    def _unlink(self, link: int, bit: int, at: NDArray[np.int64]) -> None:
        if link < 0:
            root, scale = self._grid_roots[-1 - link]
            if self._grids.discard(-1 - link, bit, self._rows):
                del root.grids[scale], self._grid_roots[-1 - link]
        else:
            node = self._nodes[link]
            assert node is not None
            root = node.root
            if node.discard(bit, self._rows):
                del node.home[node.key]
                self._nodes[link] = None
                self._free_nodes.append(link)
                if node.home is root.names:
                    del self._known[node.key]
        clear_bits(self._rows.bits[root.asked], at)
        self._leave(root)

    def _leave(self, root: Root) -> None:
        """Forget a root that nobody asks any more."""
        if root.name in self._roots and root.is_empty():
            self._rows.drop(root.asked)
            del self._roots[root.name]
            self._known.pop(root.name, None)
            self._spots[root.at] = None
            self._free_spots.append(root.at)

    # Matching ----------------------------------------------------------------------------------

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        return self.match_many([reading], setting)[0]

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        del setting
        found: list[list[SubId]] = []
        for bits in self.bits_of(readings):
            ids = bits.tolist()
            found.append(self._joined(ids) if self._several else list(map(self._owner.__getitem__, ids)))
        return found

    def bits_of(self, readings: Sequence[Reading]) -> list[NDArray[np.int32]]:
        """Return the bits that live for each reading: the matching itself, before anybody's id is looked up."""
        code: array[int] = array("i")
        starts, queries = [0], [(0.0, 0.0, 0, 0)]
        for reading in readings:
            self._program(reading, code, queries)
            starts.append(len(code))
        grids, table = self._grids, np.array(queries)
        spans, ties = np.ascontiguousarray(table[:, :2]), np.ascontiguousarray(table[:, 2:]).astype(np.int64)
        steps, places = np.frombuffer(code, np.int32), np.array(starts, np.int64)
        scratch = np.empty((4, self._rows.words), np.uint64)
        room = np.empty(max(len(self._owner), ROOM), np.int32)
        ends = np.zeros(len(readings), np.int64)
        found: list[NDArray[np.int32]] = []
        while len(found) < len(readings):
            first = len(found)
            after = match(
                steps, places, first, spans, ties, self._rows.bits, scratch, grids.rows, grids.domains,
                grids.low, grids.low_tie, grids.high, grids.high_tie, room, ends,
            )  # fmt: skip
            begin = 0
            for end in ends[first:after].tolist():
                found.append(room[begin:end].copy())
                begin = end
        return found

    def _program(self, reading: Reading, code: array[int], queries: list[tuple[float, float, int, int]]) -> None:
        """Write an event's operands as the kernel reads them (Algorithm 6)."""
        singles = self._singles(reading)
        if singles is None:
            pairs = pairs_of(reading, self._known)
            for root in self._order:
                found = pairs.get(root.at, ())
                code.append(root.asked)
                code.append(len(found))
                for value, places in found:
                    self._pair(root, value, places, code, queries)
            return
        for root in self._order:
            places = singles[root.at]
            code.append(root.asked)
            if places:
                code.append(1)
                self._pair(root, places.pop(0), places, code, queries)
            else:
                code.append(0)

    def _singles(self, reading: Reading) -> list[list[Any]] | None:
        """Return for each root its one value and the places of the names it goes by; nothing, if a root has several.

        Most events are so, and this is what costs most of a small index. The reader gives one object to all names.
        """
        found: list[list[Any]] = [[] for _ in self._spots]
        look_up = self._known.get
        try:
            for name, values in reading.values.items():
                at = look_up(name)
                if at is not None:
                    (value,) = values
                    slot = found[at[0]]
                    if not slot:
                        slot.append(value)
                    elif value is not slot[0]:
                        return None
                    slot.append(at[1])
        except ValueError:
            return None
        return None if reading.elements else found

    def _pair(
        self,
        root: Root,
        value: Any,
        places: list[int],
        code: array[int],
        queries: list[tuple[float, float, int, int]],
    ) -> None:
        """Write one pair: the nodes of its names, those of its value, and the grids it is looked up in."""
        if root.alone:
            code.append(-1)
        elif min(places) >= 0:
            code.append(len(places))
            code.fromlist(places)
            code.append(0)
        else:
            code += self._mixed(places)
        code += root.operand_of(value)
        root.write_queries(value, code, queries)

    def _mixed(self, places: list[int]) -> array[int]:
        """Return names, some of which have a list instead of a row, as the kernel reads them."""
        rows = [place for place in places if place >= 0]
        nodes = [self._nodes[-1 - place] for place in places if place < 0]
        ids = [id for node in nodes if node is not None and node.ids is not None for id in node.ids]
        return array("i", [len(rows), *rows, len(ids), *ids])

    def _joined(self, bits: list[int]) -> list[SubId]:
        """Return owners, each once, of whose rows one has all its bits here."""
        found: dict[SubId, None] = {}
        seen: dict[int, int] = {}
        for bit in bits:
            row, needed = self._several.get(bit, (bit, 1))
            seen[row] = seen.get(row, 0) + 1
            if seen[row] == needed:
                found[self._owner[bit]] = None
        return list(found)

    def explain(self) -> dict[str, object]:
        """Say how large the index is."""
        return {
            "algorithm": "CTPS: bit arrays on concept trees",
            "filters": len(self._bits),
            "bits": len(self._owner) - len(self._free),
            "roots": len(self._roots),
            "nodes": len(self._nodes) - len(self._free_nodes),
            "grids": len(self._grid_roots),
            "cells of a grid": f"{self._cells} x {self._cells}",
            "bytes of bit arrays": self._rows.nbytes,
            "bytes of ends": self._grids.nbytes,
        }
