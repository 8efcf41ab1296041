"""CTPS: subscriptions as bits on the nodes of concept trees.

Zhang, Wang, Huang, Yung, "Concept Tree-Based Event Matching Algorithm in Publish/Subscribe Systems", 2022, sections 4
and 5 (Algorithms 1 to 9, and deletion).

Every node of an attribute tree (m1) or value tree (m2), every text (m3) and every cell of a grid of intervals (m4)
has a bit array of the subscriptions that name it. For a value of an event the arrays of its node and of all above
are united, as are those of the names it goes by; a subscription that constrains the root and is not in both fails.

Cost, for n subscriptions: to add or remove one O(its constraints); to match an event O(n/64) words for each of the
operands, which are height + 1 for each name and value, and up to T*T/4 cells for each number, plus O(n/T) compared
ends of subscriptions that have not failed yet; memory O(n/8) bytes for each node or cell that has more than a few
subscriptions.

Corrections are in README.md here. The totals of each tree and the `*` of texts have become one array for each root, of
the subscriptions that constrain it.
"""

from __future__ import annotations

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.kernels.bits import clear_bits, set_bits
from tidings.kernels.papers.ctps import match
from tidings.papers.common.slots import RowOwners, Slots
from tidings.papers.ctps.bit_rows import BitNode, BitRows, PendingBits, RootIndex, encode_operand
from tidings.papers.ctps.concept_terms import ConceptTerm, TermCompiler, TermKind, TermRow, TermRows, group_pairs
from tidings.papers.ctps.gem import CELLS, IntervalGrids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidings.algebra import Reading, Setting
    from tidings.algebra.law.typed_attribute import TypedAttribute
    from tidings.concepts import Ontology
    from tidings.kernels.array_types import Int32Array, IntArray
    from tidings.matcher.algorithm import SubId
    from tidings.model import Filter
    from tidings.papers.ctps.bit_rows import GridQueries

MIN_RESULTS = 4096
"""The kernel stops and is called again when its results exceed this, or one for each subscription."""


class Ctps:
    """Bit arrays on concept trees."""

    def __init__(self, ontology: Ontology, *, cells: int = CELLS) -> None:
        """Start without subscriptions; `cells` is the width T of the grids."""
        self._terms = TermCompiler("ctps", ontology)
        self._cells = cells
        self.bit_rows, self.grids = BitRows(), IntervalGrids(cells)
        self._roots: dict[TypedAttribute, RootIndex] = {}
        self._root_order: list[RootIndex] = []
        self._root_slots: Slots[RootIndex] = Slots()
        self._nodes: Slots[BitNode] = Slots()
        self._labels_by_name: dict[TypedAttribute, tuple[int, int]] = {}  # a name's root, and its node's place
        self._grid_roots: dict[int, tuple[RootIndex, str]] = {}
        self.owners = RowOwners()  # of bits; a filter has one for each part of each row
        self._links: list[bytes] = []  # of each bit: its nodes, and -1 minus its grids
        # Of a bit of a filter that has several: the first bit of its row, and how many of that row must survive.
        self._multi_bit_rows: dict[int, tuple[int, int]] = {}

    def compile_filter(self, tree: Filter) -> TermRows:
        """Return the filter's rows of terms."""
        return self._terms.compile_rows(tree)

    def add_many(self, filters: Iterable[tuple[SubId, TermRows]]) -> None:
        """Take compiled filters in (Algorithm 2); a known id is replaced."""
        latest = dict(filters)
        for id in latest:
            if id in self.owners:
                self.remove(id)
        self._widen(self.owners.row_count + sum(map(len, latest.values())))
        loading = PendingBits()
        for id, rows in latest.items():
            bits = [tuple(self._add_part(id, part, loading) for part in self._split_row(row)) for row in rows]
            flat = tuple(chain(*bits))
            if len(flat) > 1:
                self._multi_bit_rows.update((bit, (row[0], len(row))) for row in bits for bit in row)
            self.owners.assign(id, flat)
        self._widen(self.owners.capacity)
        self._commit(loading)

    def _widen(self, subscriptions: int) -> None:
        if self.bit_rows.widen(subscriptions):
            self.grids.widen(self.bit_rows.words * 64)
            for node in self._nodes.items:
                if node is not None:
                    node.demote(self.bit_rows)
                    self._update_label(node)

    def _update_label(self, node: BitNode) -> None:
        """Record where the node of a name is now."""
        if node.home is node.root.names:
            self._labels_by_name[node.key] = (node.root.at, node.place)

    def _split_row(self, row: TermRow) -> list[TermRow]:
        """Divide a row so that no part constrains a root twice."""
        if len(row) < 2 or len({self._terms.find_root(term.name) for term in row}) == len(row):
            return [row]
        parts: list[dict[TypedAttribute, ConceptTerm]] = []
        for term in row:
            root = self._terms.find_root(term.name)
            part = next((part for part in parts if root not in part), None)
            if part is None:
                parts.append({root: term})
            else:
                part[root] = term
        return [tuple(part.values()) for part in parts]

    def _add_part(self, id: SubId, part: TermRow, loading: PendingBits) -> int:
        """Give a part a bit, and note it at the nodes and grids of its terms."""
        bit = self.owners.allocate(id)
        if bit == len(self._links):
            self._links.append(b"")
        links = []
        for term in part:
            root = self._get_root(term.name)
            loading.bits_by_root.setdefault(root, []).append(bit)
            if not root.has_single_name:
                links.append(loading.note(root.names[term.name], bit))
            if term.kind is TermKind.NUMBER:
                grid = root.grids.get(term.value.scale)
                if grid is None:
                    grid = root.grids[term.value.scale] = self.grids.allocate()
                    self._grid_roots[grid] = (root, term.value.scale)
                ids, spans = loading.spans_by_grid.setdefault(grid, ([], []))
                ids.append(bit)
                spans.append(term.value)
                links.append(-1 - grid)
            else:
                links += [loading.note(node, bit) for node in self._get_value_nodes(root, term)]
        loading.bits.append(bit)
        self._links[bit] = array("i", links).tobytes()
        return bit

    def _get_root(self, name: TypedAttribute) -> RootIndex:
        """Find or make the root and node of a name (Algorithm 1, for names in use only)."""
        top = self._terms.find_root(name)
        root = self._roots.get(top)
        if root is None:
            has_single_name = self._terms.is_alone(name)
            root = RootIndex(top, self.bit_rows.allocate(), has_single_name=has_single_name, terms=self._terms)
            self._roots[top], root.at = root, self._root_slots.add(root)
        if name not in self._labels_by_name:
            place = 0 if root.has_single_name else self._get_node(root, root.names, name).place
            self._labels_by_name[name] = root.at, place
        return root

    def _get_value_nodes(self, root: RootIndex, term: ConceptTerm) -> list[BitNode]:
        if term.kind is TermKind.CONCEPT:
            tree, concept = term.value
            return [self._get_node(root, root.concepts.setdefault(tree, {}), concept)]
        if term.kind is TermKind.TEXT:
            return [self._get_node(root, root.texts, text) for text in term.value]
        return [self._get_node(root, root.exists, None)]

    def _get_node(self, root: RootIndex, home: dict[Any, BitNode], key: Any) -> BitNode:
        node = home.get(key)
        if node is None:
            node = home[key] = BitNode(root, home, key)
            node.number = self._nodes.add(node)
        return node

    def _commit(self, loading: PendingBits) -> None:
        """Set all bits of a load."""
        for node in loading.nodes:
            node.commit(self.bit_rows)
            self._update_label(node)
        for grid, (ids, spans) in loading.spans_by_grid.items():
            self.grids.add(grid, ids, spans, self.bit_rows)
        for root, bits in loading.bits_by_root.items():
            set_bits(self.bit_rows.bits[root.constrained_row], np.array(bits, np.int64))
        set_bits(self.bit_rows.bits[0], np.array(loading.bits, np.int64))
        self._refresh()

    def _refresh(self) -> None:
        """Forget cached operands; grids come last, when few subscriptions survive."""
        for root in self._roots.values():
            root.operands.clear()
        self._root_order = sorted(self._roots.values(), key=lambda root: bool(root.grids))

    def remove(self, id: SubId) -> None:
        """Forget a filter that is there: its bits are cleared at the nodes and grids of its terms."""
        for bit in self.owners.release(id):
            at = np.array([bit], np.int64)
            clear_bits(self.bit_rows.bits[0], at)
            for link in array("i", self._links[bit]):
                self._unlink(link, bit, at)
            self._multi_bit_rows.pop(bit, None)
            self._links[bit] = b""
        self._refresh()

    def _unlink(self, link: int, bit: int, at: IntArray) -> None:
        if link < 0:
            root, scale = self._grid_roots[-1 - link]
            if self.grids.discard(-1 - link, bit, self.bit_rows):
                del root.grids[scale], self._grid_roots[-1 - link]
        else:
            node = self._nodes.items[link]
            root = node.root
            if node.discard(bit, self.bit_rows):
                del node.home[node.key]
                self._nodes.remove(link)
                if node.home is root.names:
                    del self._labels_by_name[node.key]
        clear_bits(self.bit_rows.bits[root.constrained_row], at)
        if root.name in self._roots and root.is_empty():
            self.bit_rows.release(root.constrained_row)
            del self._roots[root.name]
            self._labels_by_name.pop(root.name, None)
            self._root_slots.remove(root.at)

    def match(self, reading: Reading, setting: Setting) -> list[SubId]:
        """Return the ids of the filters that accept the reading."""
        return self.match_many([reading], setting)[0]

    def match_many(self, readings: Sequence[Reading], setting: Setting) -> list[list[SubId]]:
        """Return the same for each of many readings."""
        del setting
        resolve = self._resolve_owners if self._multi_bit_rows else self.owners.resolve
        return [resolve(bits.tolist()) for bits in self._match_bits(readings)]

    def _match_bits(self, readings: Sequence[Reading]) -> list[Int32Array]:
        """Return the bits that survive each reading."""
        code: array[int] = array("i")
        starts, queries = [0], [(0.0, 0.0, 0, 0)]
        for reading in readings:
            self._encode_event(reading, code, queries)
            starts.append(len(code))
        table = np.array(queries)
        spans, ties = np.ascontiguousarray(table[:, :2]), np.ascontiguousarray(table[:, 2:]).astype(np.int64)
        events = np.frombuffer(code, np.int32), np.array(starts, np.int64), spans, ties
        cell_rows, domain, *grid_ends = self.grids.arrays
        grids = cell_rows, tuple(domain), tuple(grid_ends)
        scratch = np.empty((4, self.bit_rows.words), np.uint64)
        out = np.empty(max(self.owners.capacity, MIN_RESULTS), np.int32)
        ends = np.zeros(len(readings), np.int64)
        results: list[Int32Array] = []
        while len(results) < len(readings):
            first, begin = len(results), 0
            after = match(events, first, self.bit_rows.bits, scratch, grids, out, ends)
            for end in ends[first:after].tolist():
                results.append(out[begin:end].copy())
                begin = end
        return results

    def _encode_event(self, reading: Reading, code: array[int], queries: GridQueries) -> None:
        """Write an event's operands as the kernel reads them (Algorithm 6)."""
        singles = self._collect_singles(reading)
        if singles is None:
            pairs = group_pairs(reading, self._labels_by_name)
            for root in self._root_order:
                root_pairs = pairs.get(root.at, ())
                code.append(root.constrained_row)
                code.append(len(root_pairs))
                for value, places in root_pairs:
                    self._encode_pair(root, value, places, code, queries)
            return
        for root in self._root_order:
            places = singles[root.at]
            code.append(root.constrained_row)
            if places:
                code.append(1)
                self._encode_pair(root, places.pop(0), places, code, queries)
            else:
                code.append(0)

    def _collect_singles(self, reading: Reading) -> list[list[Any]] | None:
        """Return for each root its only value and the places of the names it goes by; None, if a root has several.

        Most events are so, and this is what costs most of a small index. The reader has one object under all names.
        """
        singles: list[list[Any]] = [[] for _ in self._root_slots.items]
        look_up = self._labels_by_name.get
        try:
            for name, values in reading.values.items():
                at = look_up(name)
                if at is not None:
                    (value,) = values
                    slot = singles[at[0]]
                    if not slot:
                        slot.append(value)
                    elif value is not slot[0]:
                        return None
                    slot.append(at[1])
        except ValueError:
            return None
        return None if reading.elements else singles

    def _encode_pair(
        self, root: RootIndex, value: Any, places: list[int], code: array[int], queries: GridQueries
    ) -> None:
        """Write one pair: the nodes of its names, those of its value, and the grids it is looked up in."""
        if root.has_single_name:
            code.append(-1)
        elif min(places) >= 0:
            code.append(len(places))
            code.fromlist(places)
            code.append(0)
        else:  # some names have a list instead of a row
            rows = [place for place in places if place >= 0]
            code += encode_operand(rows, [self._nodes.items[-1 - place] for place in places if place < 0])
        code += root.get_operand(value)
        root.write_queries(value, code, queries)

    def _resolve_owners(self, bits: list[int]) -> list[SubId]:
        """Return the owners, each once, that have a row all of whose bits are among these."""
        owners: dict[SubId, None] = {}
        seen: dict[int, int] = {}
        for bit in bits:
            row, needed = self._multi_bit_rows.get(bit, (bit, 1))
            seen[row] = seen.get(row, 0) + 1
            if seen[row] == needed:
                owners[self.owners.get_owner(bit)] = None
        return list(owners)

    def explain(self) -> dict[str, object]:
        """Return how large the index is."""
        return {
            "algorithm": "CTPS: bit arrays on concept trees",
            "filters": len(self.owners),
            "bits": self.owners.row_count,
            "roots": len(self._roots),
            "nodes": len(self._nodes),
            "grids": len(self._grid_roots),
            "cells of a grid": f"{self._cells} x {self._cells}",
            "bytes of bit arrays": self.bit_rows.bits.nbytes,
            "bytes of ends": self.grids.nbytes,
        }
