"""Three searches in three notations, three ads, the pairs they make, and a terminal."""

import io
import json

SEARCHES = [
    {"id": "s1", "filter": "make = 'ford' and price < 9000"},
    {"id": "s2", "filter": "make=ford&year_from=2015", "notation": "url"},
    {"id": "s3", "filter": {"attr": "year", "op": ">=", "value": 2015}},
]
ADS = [
    {"id": "a", "make": "ford", "price": 8500, "year": 2016},
    {"id": "b", "make": "vw", "price": 4000, "year": 2012},
    {"id": "c", "make": "ford", "price": 12000, "year": 2019},
]
PAIRS = {("a", "s1"), ("a", "s2"), ("a", "s3"), ("c", "s2"), ("c", "s3")}


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True
