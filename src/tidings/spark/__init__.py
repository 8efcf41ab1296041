"""The pipeline on Spark, and the only importer of pyspark: `match`, `detect` and `train`, on batches and streams.

from tidings import spark as ts

session = ts.session("my job")
pairs = ts.match(events, subscriptions, event_id="id")
"""

try:
    import pyspark as _pyspark  # noqa: F401 - asked for first, so that its absence is said in one line
except ModuleNotFoundError as problem:
    from tidings.errors import MissingExtra

    msg = "tidings.spark needs PySpark; install it with `pip install 'tidings[spark]'`"
    raise MissingExtra(msg) from problem

from tidings.spark.detect.detect import bad_events, detect
from tidings.spark.match.match import dead_letters, match, refused
from tidings.spark.match.sql import register
from tidings.spark.schema import schema_of
from tidings.spark.session import session
from tidings.spark.subscriptions.compile_frame import compile  # noqa: A004 - as `tidings compile` does
from tidings.spark.train.train import train

__all__ = [
    "bad_events",
    "compile",
    "dead_letters",
    "detect",
    "match",
    "refused",
    "register",
    "schema_of",
    "session",
    "train",
]
