"""Building: rows keep their literals, keys are found again, and bitmaps lose no row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.kernels.match.random_rows import accepts, build_of, draw_table, get_spans

from tidings.kernels.match import index_build
from tidings.kernels.match.keys import find_cluster
from tidings.kernels.match.layout import OP_BITS

few = examples(25)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 19), max_size=30))
@few
def test_gathered_rows_have_the_literals_of_their_owners(seed, owner):
    table = draw_table(seed, rows=20)
    lits = table.literals
    start, head, low, high = index_build.gather_rows(
        np.array(owner, np.uint32), table.start, lits.head, lits.low, lits.high
    )
    for row, old in enumerate(owner):
        mine, its = slice(start[row], start[row + 1]), slice(table.start[old], table.start[old + 1])
        for new, kept in ((head, lits.head), (low, lits.low), (high, lits.high)):
            assert new[mine].tolist() == kept[its].tolist()


@given(st.sets(st.tuples(st.integers(0, 2**20), st.integers(0, 2**20)), max_size=60), st.integers(0, 50))
@few
def test_hashed_keys_are_found_and_no_others(keys, base):
    keys = sorted(keys)
    size = 1 << int(np.ceil(np.log2(max(2, 2 * len(keys)))))
    tables = [np.zeros(base + size, np.uint32) for _ in range(3)]
    first, second = np.array(keys, np.int64).reshape(-1, 2).T.copy()
    index_build.fill_hash(first, second, np.arange(len(keys)), size - 1, *(table[base:] for table in tables))
    group = [np.array([number], np.int64) for number in (base, 0, size - 1)]

    def look_up(key):
        return find_cluster(np.int64(key[0]), np.int64(key[1]), 0, *group, np.zeros(0, np.uint32), *tables)

    assert [look_up(key) for key in keys] == list(range(len(keys)))
    assert all(look_up((a, b + 1)) == -1 for a, b in keys if (a, b + 1) not in keys)


@given(st.integers(0, 2**32), st.sets(st.integers(1, 13), max_size=6))
@few
def test_a_literal_has_its_bit_wherever_some_value_satisfies_it(seed, cuts):
    """Never less; and nothing more where every end of the literal is an edge."""
    table = draw_table(seed, rows=30)
    rows, edges = build_of(table), np.array(sorted(cuts), np.uint32)
    buckets = [*zip([0, *sorted(cuts)], [*sorted(cuts), 13], strict=True)]
    for at in range(len(rows.head)):
        bits = np.zeros(len(buckets) + 1, np.uint64)
        index_build.set_literal_bits(rows, at, edges, 0, len(edges), 0, 1, 0, np.uint64(1), bits)
        op, spans = int(rows.head[at]) & 7, get_spans(table.literals, at)
        wanted = [any(accepts(op, spans, [(code, code)]) for code in range(*bucket)) for bucket in buckets]
        is_set = bits.astype(bool).tolist()
        assert all(has or not must for has, must in zip(is_set[:-1], wanted, strict=True))
        assert is_set[-1] == accepts(op, spans, [])
        ends = {end for low, high in spans if low <= high for end in (low, high + 1)} - {0}
        if ends <= cuts and disjoint(spans):
            places = [at for at, bucket in enumerate(buckets) if range(*bucket)]
            assert [is_set[at] for at in places] == [wanted[at] for at in places], "exact where every end is an edge"


def disjoint(spans):
    """Encoders give unions of disjoint intervals that do not touch; of others the bitmaps only promise enough."""
    return len(spans) <= 1


@given(st.integers(0, 2**32))
@few
def test_together_is_the_intersection_of_plain_literals(seed):
    table = draw_table(seed, rows=60, columns=1)
    rows = build_of(table)
    for row in range(60):
        places = range(rows.start[row], rows.start[row + 1])
        if len(places) < 2:
            continue
        low, high = index_build.intersect_literals(rows, row, places[0])
        plain = all(rows.head[at] & 15 == 0 for at in places)
        common = set(range(13)).intersection(
            *(range(a, b + 1) for at in places for a, b in get_spans(table.literals, at))
        )
        if plain and common:
            assert (low, high) == (min(common), max(common))
        else:
            assert low > high or not plain


@given(st.integers(0, 2**32))
@few
def test_columns_of_tiles_are_those_of_their_rows(seed):
    table = draw_table(seed, rows=30)
    tile_row, tile_end = np.array([0, 10], np.uint32), np.array([10, 30], np.uint32)
    columns = index_build.find_tile_columns(
        table.start, table.literals.head, tile_row, tile_end, np.array([-1, -1, 2, -1]), 4
    )
    for tile, (begin, end) in enumerate(((0, 10), (10, 30))):
        heads = table.literals.head[table.start[begin] : table.start[end]]
        wanted = {int(head) >> OP_BITS for head in heads} - ({2} if tile else set())
        assert set(np.flatnonzero(columns[tile]).tolist()) == wanted
