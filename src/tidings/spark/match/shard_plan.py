"""Where the matches of one event come together: decided here for `ts.match`, SQL and `tidings run`.

Subscriptions may lie in several shards, and every event is matched against each of them. With one shard a worker sees
all matches of an event, so it can list them in one row or count them against a limit. With several shards no worker
does: workers then return plain pairs with the number of the event's row, and the rows of an event are gathered by that
number afterwards (`shard_gathering`), at the price of a shuffle. Pairs without a limit never need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, StructField

from tidings.spark.match.worker_matcher import build_lists, build_pairs

if TYPE_CHECKING:
    from pyspark.sql.types import LongType, StringType

    from tidings.spark.match.worker_matcher import RowBuilder


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """How matching is spread over shards and tasks.

    `grouped` wants one row for each event with the list of its subscriptions, `limit` leaves out events that more
    subscriptions match, `judge` wants the dead letters alone, and `spread` is the number of tasks for each shard.
    """

    shards: int
    grouped: bool = False
    limit: int | None = None
    judge: bool = False
    spread: int | None = None

    @property
    def copies(self) -> int:
        """The number of shards that each event is sent to; every shard refuses the same events, so judging asks one."""
        return 1 if self.judge else self.shards

    @property
    def needs_gathering(self) -> bool:
        """Whether the rows of one event come from several shards and must be put together after the workers."""
        return self.shards > 1 and (self.grouped or self.limit is not None)

    @property
    def worker_limit(self) -> int | None:
        """The limit that a worker can enforce by itself."""
        return None if self.needs_gathering else self.limit

    @property
    def row_builder(self) -> RowBuilder:
        """The function that makes a worker's rows of its matches."""
        return build_lists if self.grouped and not self.needs_gathering else build_pairs

    def build_id_field(self, name: str, id_type: LongType | StringType, *, nullable: bool = True) -> StructField:
        """Return the column of subscription ids as the workers return it."""
        is_list = self.row_builder is build_lists
        return StructField(name, ArrayType(id_type, containsNull=False) if is_list else id_type, nullable=nullable)
