"""Random rows and cells in plain arrays, and the slow twins that say what kernels must find in them."""

from random import Random

import numpy as np

from tidings.engine.compile.code_spaces import RankedSpace
from tidings.engine.compile.columns import Column, View
from tidings.engine.compile.row_table import Literals, RowTable
from tidings.kernels.match.layout import OP_BITS, EventCells, RowLiterals
from tidings.kernels.match.literals import ABSENT, SEVERAL, UNION
from tidings.kernels.match.row_codes import EMPTY_LOW

OPS = (0, 0, 0, 0, 1, 2, 3, 4, 5)


def span(random, top, *, points=0.5):
    """Return an interval of codes; now and then one that accepts nothing."""
    if random.random() < 0.05:
        return EMPTY_LOW, 0
    if random.random() < points:
        point = 2 * random.randint(0, top // 2 - 1) + 1
        return point, point
    low, high = sorted((random.randint(0, top), random.randint(0, top)))
    return low, high


def draw_table(seed, *, rows=40, columns=4, ends=6):
    """Return a table of rows; some slots have several rows, some rows several slots."""
    random = Random(seed)
    start, head, low, high, union_start, union_low, union_high = [0], [], [], [], [0], [], []
    for _ in range(rows):
        for _ in range(random.choice((0, 1, 2, 2, 3, 6))):
            column, op = random.randrange(columns), random.choice(OPS)
            if random.random() < 0.3:
                head.append(column << OP_BITS | op | UNION)
                low.append(len(union_start) - 1)
                high.append(0)
                points = {2 * random.randrange(ends) + 1 for _ in range(random.choice((0, 1, 3, 12)))}
                parts = [(p, p) for p in sorted(points)] if random.random() < 0.7 else [span(random, 2 * ends)]
                parts = [part for part in parts if part[0] <= part[1]]  # encoders put nothing empty into a union
                union_low += [part[0] for part in parts]
                union_high += [part[1] for part in parts]
                union_start.append(len(union_low))
            else:
                first, last = span(random, 2 * ends)
                head.append(column << OP_BITS | op)
                low.append(first)
                high.append(last)
        start.append(len(head))
    sizes = [random.choice((1, 1, 1, 2, 4)) for _ in range(rows)]
    slots = random.choice((sum(sizes), max(1, rows // 2)))
    slot = (
        random.sample(range(slots), slots)
        if slots == sum(sizes)
        else [random.randrange(slots) for _ in range(sum(sizes))]
    )
    arrays = [np.array(words, np.uint32) for words in (head, low, high, union_start, union_low, union_high)]
    return RowTable(
        columns=tuple(Column(f"c{number}", View.NUMBER) for number in range(columns)),
        spaces=tuple(RankedSpace(np.arange(ends, dtype=np.float64)) for _ in range(columns)),
        start=np.array(start, np.uint32),
        literals=Literals(*arrays),
        entry=np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        slot=np.array(slot, np.uint32),
        item_row=np.zeros(0, np.uint32),
        item_number=np.zeros(0, np.uint32),
    )


def build_of(table):
    """Return the rows of a table as kernels take them while they build."""
    return RowLiterals(table.start, *table.literals)


def draw_cells(seed, *, events=25, columns=4, ends=6):
    """Return cells: one code, absent, or several values of which some are ranges; and the values in plain lists."""
    random = Random(seed)
    cell = np.full((events, columns), ABSENT, np.uint32)
    starts, lows, highs = [0], [], []
    plain = np.ones(events, np.uint8)
    values = [[[] for _ in range(columns)] for _ in range(events)]
    for event in range(events):
        many = random.random() < 0.4
        for column in range(columns):
            chance = random.random()
            if chance < 0.2:
                continue
            if many and chance < 0.6:
                spans = [span(random, 2 * ends) for _ in range(random.choice((1, 2, 3)))]
                spans = [span for span in spans if span[0] <= span[1]] or [(0, 2 * ends)]
                cell[event, column] = SEVERAL | np.uint32(len(starts) - 1)
                lows += [span[0] for span in spans]
                highs += [span[1] for span in spans]
                starts.append(len(lows))
                plain[event] = 0
                values[event][column] = spans
            else:
                code = random.randint(0, 2 * ends)
                cell[event, column] = code
                values[event][column] = [(code, code)]
    cells = EventCells(cell, plain, np.array(starts, np.int64), np.array(lows, np.uint32), np.array(highs, np.uint32))
    return cells, values


def get_spans(literals, at):
    """Return the intervals of a literal."""
    if not literals.head[at] & UNION:
        return [(int(literals.low[at]), int(literals.high[at]))]
    first, last = literals.union_start[literals.low[at]], literals.union_start[literals.low[at] + 1]
    return [(int(literals.union_low[part]), int(literals.union_high[part])) for part in range(first, last)]


def accepts(op, spans, values):
    """Tell whether values satisfy a literal, as `kernels.literals` says it in words."""
    inside = [any(low <= last and first <= high for low, high in spans) for first, last in values]
    some, every = any(inside), all(inside)
    return (
        bool(values) and some,
        bool(values) and every,
        bool(values) and not some,
        not (bool(values) and some),
        not (bool(values) and every),
        not (bool(values) and not some),
    )[op & 7]


def find_naive_matches(table, values):
    """Return the pairs of event and slot, by two loops."""
    pairs = set()
    for event, columns in enumerate(values):
        for row in range(len(table.start) - 1):
            places = range(table.start[row], table.start[row + 1])
            head = table.literals.head
            if all(
                accepts(int(head[at]) & 7, get_spans(table.literals, at), columns[head[at] >> OP_BITS]) for at in places
            ):
                pairs.update((event, int(slot)) for slot in table.slot[table.entry[row] : table.entry[row + 1]])
    return pairs
