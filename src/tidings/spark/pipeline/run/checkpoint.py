"""The checkpoint folder: the state of a pipeline, and the version of Tidings that wrote it.

| name | what it is |
|---|---|
| `tidings.json` | the format, the version that made it, the pipeline's own id |
| `query/` | Spark's checkpoint: which events were read, which batches are done |
| `patterns/` | the same of the query that looks for patterns, and how far each of them came |
| `pattern_versions/` | versions of the patterns of a store, which one a batch uses, and ids that came before |
| `pattern_clock/` | what is due on an idle stream, and ticks of the clock |
| `files_of_QUERY.jsonl` | which files of a service's folder of events belong to which batch of a query |
| `subscriptions/NAME/` | versions of the subscriptions, and which one a batch uses; NAME stands for schema and feed |
| `newest.json` | the newest time of an event up to a batch, for `late` |
| `refused_subscriptions.jsonl` | changes of subscriptions that were refused, with the reason |
| `spark.log` | what Spark itself says: its errors, with their traces |
| `dead_letters/` | events that could not be read, unless the pipeline says otherwise |
| `dead_letters_of_patterns/` | the same of the patterns, and events that came too late for them |
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import tidings as td
from tidings.configuration.local_paths import to_local_path
from tidings.engine.persist.mapped_arrays import write_atomically
from tidings.errors import CheckpointError
from tidings.spark.pipeline.run.failures import diagnose_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidings.errors import TidingsError
    from tidings.matcher.algorithm import SubId
    from tidings.spark.query_context import QueryContext

FORMAT = 1
"""The format of the folder; a newer one is refused by its number."""

MARK = "tidings.json"


class CheckpointInUse(CheckpointError):
    """Another process runs the pipeline of this checkpoint."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An open checkpoint folder."""

    folder: Path
    id: str

    @classmethod
    def open(cls, path: str) -> Checkpoint:
        """Open or create the folder; one of another program or a newer version is refused."""
        folder = to_local_path(path)
        if folder is None:
            msg = f"the checkpoint `{path}` must be a path that driver and workers see, such as a mounted volume"
            raise CheckpointError(msg)
        mark = folder / MARK
        try:
            if not mark.exists():
                _check_empty(folder)
                folder.mkdir(parents=True, exist_ok=True)
                content = {"format": FORMAT, "tidings": td.__version__, "id": str(uuid.uuid4())}
                write_atomically(mark, iter([json.dumps(content).encode()]))
        except OSError as problem:
            msg = f"the checkpoint `{folder}` cannot be made: {problem.strerror}; give a folder that can be written to"
            raise CheckpointError(msg) from problem
        return cls(folder, _read_mark(mark))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out, which would remove what this one writes; the lock ends with the process."""
        try:
            mark = (self.folder / MARK).open("rb+")
        except OSError as problem:
            way_out = diagnose_folder(self.folder, "") or f"{problem.strerror or problem}; correct this"
            msg = f"the checkpoint `{self.folder}` cannot be written to: {way_out}, then start the pipeline again"
            raise CheckpointError(msg) from problem
        with mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as problem:
                way_out = "stop it, or give a new folder"
                msg = f"the checkpoint `{self.folder}` is in use by another `tidings run`; {way_out}"
                raise CheckpointInUse(msg) from problem
            yield

    def is_done(self, batch: int, name: str = "query") -> bool:
        """Tell whether Spark has committed a batch."""
        return (self.folder / name / "commits" / str(batch)).exists()

    def find_newest_file(self, name: str = "query") -> str | None:
        """Return the newest file of a service's events up to the last batch that a query has committed."""
        done = [int(path.name) for path in (self.folder / name / "commits").glob("*") if path.name.isdigit()]
        try:
            lines = (self.folder / name / "offsets" / str(max(done))).read_text(encoding="utf-8").splitlines()
            newest = json.loads(lines[2])["newest"]
        except (OSError, ValueError, LookupError, TypeError):  # no batch, or another source
            return None
        return str(newest) or None

    def find_newest_batch_time(self, name: str = "query") -> datetime | None:
        """Return when the newest batch of a query began, by the clock as it was then."""
        batches = [int(path.name) for path in (self.folder / name / "offsets").glob("*") if path.name.isdigit()]
        try:
            lines = (self.folder / name / "offsets" / str(max(batches))).read_text(encoding="utf-8").splitlines()
            return datetime.fromtimestamp(json.loads(lines[1])["batchTimestampMs"] / 1000, UTC)
        except (OSError, ValueError, LookupError, TypeError):  # no batch yet
            return None

    def locate_subscriptions(self, context: QueryContext, feed: Mapping[str, object]) -> Path:
        """Return the folder of versions for this context and feed.

        The position in a feed (names of files, offsets) means nothing to another feed, so each has its folder.
        """
        parts = {name: part.to_dict() for name, part in context.overrides.items()}
        schema = context.vocabulary.schema
        closed = schema is not None and schema.closed
        identity = json.dumps({**parts, "closed": closed, "feed": dict(feed)}, sort_keys=True, default=str)
        return self.folder / "subscriptions" / hashlib.sha256(identity.encode()).hexdigest()[:16]

    # The newest time of an event ---------------------------------------------------------------

    def read_newest(self) -> datetime | None:
        """Return the newest time of an event up to the last finished batch."""
        try:
            content = json.loads((self.folder / "newest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return datetime.fromisoformat(content["newest"])

    def write_newest(self, batch: int, newest: datetime) -> None:
        """Write the newest time of an event up to a batch."""
        content = {"batch": batch, "newest": newest.isoformat()}
        write_atomically(self.folder / "newest.json", iter([json.dumps(content).encode()]))

    # Refused subscriptions ---------------------------------------------------------------------

    @property
    def refusals(self) -> Path:
        """The file that lists refused changes."""
        return self.folder / "refused_subscriptions.jsonl"

    def read_refused(self) -> dict[str, str]:
        """Return why each subscription was refused last."""
        reasons: dict[str, str] = {}
        with suppress(FileNotFoundError), self.refusals.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(ValueError):  # a line that a crash left half written
                    entry = json.loads(line)
                    reasons[str(entry["id"])] = entry["reason"]
        return reasons

    def append_refused(self, refused: Sequence[tuple[SubId | None, TidingsError]], batch: int | None) -> None:
        """Append refused changes of subscriptions; those before the first batch have no batch number."""
        now = datetime.now(UTC).isoformat()
        with self.refusals.open("a", encoding="utf-8") as out:
            for id, problem in refused:
                out.write(json.dumps({"id": id, "reason": str(problem), "batch": batch, "at": now}) + "\n")


def _check_empty(folder: Path) -> None:
    # What ends on `.tmp` is a mark that a crash left half written.
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if not all(name.startswith(f"{MARK}.") and name.endswith(".tmp") for name in names):
        msg = f"the checkpoint `{folder}` is not empty and was not made by `tidings run`; give a new folder"
        raise CheckpointError(msg)


def _read_mark(mark: Path) -> str:
    try:
        content = json.loads(mark.read_text(encoding="utf-8"))
        format, id, version = int(content["format"]), str(content["id"]), content["tidings"]
    except (OSError, ValueError, LookupError, TypeError) as problem:
        msg = f"`{mark}` is not a checkpoint's: {problem}"
        raise CheckpointError(msg) from problem
    if format > FORMAT:
        origin = f"format {format} (by tidings {version})"
        msg = f"the checkpoint `{mark.parent}` has {origin}; this version reads up to {FORMAT}"
        raise CheckpointError(msg)
    return id
