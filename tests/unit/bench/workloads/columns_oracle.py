"""Who matches, from subscriptions in columns: NumPy on whole columns, written apart from what it judges."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

ENDS = {"from": np.greater_equal, "above": np.greater, "to": np.less_equal, "below": np.less}


class Oracle:
    """Counts for each row the conditions that an event meets; a row matches when that is all of them."""

    def __init__(self, columns):
        self.n = columns.num_rows
        self.needed = np.zeros(self.n, np.int64)
        self.equal, self.ends, self.areas = {}, [], []
        for name in columns.column_names:
            if name != "id":
                column = columns.column(name).combine_chunks()
                self.needed += np.asarray(column.is_valid())
                self._enter(name, column)

    def _enter(self, name, column):
        attribute, _, says = name.rpartition("_")
        if says in ENDS and attribute:
            numbers = pc.fill_null(pc.cast(column, pa.float64()), float("nan"))
            self.ends.append((attribute, ENDS[says], np.asarray(numbers)))
        elif says == "within" and attribute:
            self.areas.append((attribute, np.array(shapely.from_wkt(column.to_pylist()))))
        else:
            rows = {}
            for row, value in zip(np.flatnonzero(column.is_valid()), column.drop_null().to_pylist(), strict=True):
                for element in value if isinstance(value, list) else [value]:
                    rows.setdefault(element, []).append(row)
            self.equal[name] = {value: np.array(numbers) for value, numbers in rows.items()}

    def find_rows(self, event):
        met = np.zeros(self.n, np.int64)
        for name, value in event.items():
            rows_of_value = self.equal.get(name, {}).get(value) if not isinstance(value, dict) else None
            if rows_of_value is not None:
                met[rows_of_value] += 1
        for attribute, test, ends in self.ends:
            if attribute in event:
                met += test(event[attribute], ends)
        for attribute, shapes in self.areas:
            if attribute in event:
                spot = event[attribute]
                met += shapely.intersects_xy(shapes, spot["lon"], spot["lat"])
        return np.flatnonzero(met == self.needed)
