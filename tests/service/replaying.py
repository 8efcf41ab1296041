"""What must have come out of a served folder, by its checkpoint: which files a batch read, and what its claim names.

A batch of either query is what its claim says, however often it ran. Filters: each event is matched once, by the
version of the subscriptions in the claim of the batch that had it first. Patterns: an event waits for the watermark of
a later batch, which Spark has written down with the batch, and is then seen by the patterns of that batch's version
which came before it; every pattern of a version has a `td.Detector` of its own here, from the version that brings it to
the one that has it no more.
"""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tidings as td
from tidings.spark.detect.followed.pattern_versions import PatternVersions
from tidings.spark.pipeline.sources.file_log import read_entries

CLAIMS = {"query": "subscriptions/*/claims/*", "patterns": "pattern_versions/claims/patterns"}
"""Where the claims of a query lie in the checkpoint."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """A batch that has a claim: its number, the claim, its events, and the watermark in milliseconds."""

    number: int
    claim: dict
    events: list
    watermark: int


class QueryLog:
    """The batches of a query of a served folder, `query` or `patterns`, which is followed while it runs."""

    def __init__(self, data, query="query"):
        self._data, self._query = Path(data), query
        self._checkpoint = self._data / "checkpoint"
        self.batches, self.ids = [], set()
        self._read = 0  # entries of the log of files that are in batches

    def follow(self):
        """Read what has begun since, and return all batches; `ids` are those of their events."""
        for number in self._list_numbers("offsets"):
            if self.batches and number <= self.batches[-1].number:
                continue
            claims = list(self._checkpoint.glob(f"{CLAIMS[self._query]}/{number:010}.json"))
            if not claims:
                assert number == self._list_numbers("offsets")[-1]  # it has only just begun
                break
            self._add(number, json.loads(claims[0].read_text()))
        return self.batches

    def count_ids(self):
        """Read what has begun since, and return how many events are in batches."""
        self.follow()
        return len(self.ids)

    def is_done(self):
        """Tell whether the newest batch is committed."""
        return self._list_numbers("offsets") == self._list_numbers("commits")

    def count_done(self):
        """Return how many batches are committed."""
        return len(self._list_numbers("commits"))

    def _add(self, number, claim):
        facts, place = map(
            json.loads, (self._checkpoint / self._query / f"offsets/{number}").read_text().split("\n")[1:3]
        )
        entries = dict(read_entries(self._checkpoint / f"files_of_{self._query}.jsonl"))
        names = [name for entry in range(self._read + 1, place["n"] + 1) for name in entries[entry]]
        lines = [line for name in names for line in (self._data / "events" / name).read_bytes().splitlines()]
        batch = BegunBatch(number, claim, [*map(json.loads, lines)], facts["batchWatermarkMs"])
        self._read = place["n"]
        self.batches.append(batch)
        self.ids |= {event["id"] for event in batch.events}

    def _list_numbers(self, folder):
        paths = (self._checkpoint / self._query / folder).glob("*")
        return sorted(int(path.name) for path in paths if path.name.isdigit())


# Filters ---------------------------------------------------------------------------------------------


def replay_filters(data, batches):
    """Return the pairs of subscription and event that the claims of batches lead to, and who was there in each.

    That is for each batch its time and the ids of its subscriptions, with their owners.
    """
    pairs, present, seen = set(), [], set()
    (folder,) = [path for path in Path(data).glob("checkpoint/subscriptions/*") if path.is_dir()]
    live, number, matcher = td.Live(folder), None, None
    for batch in batches:
        if batch.claim["version"] != number:
            number, matcher = batch.claim["version"], live.open(batch.claim["version"])
        present.append((batch.claim["facts"]["now"], set(matcher)))
        for event in batch.events:
            if event["id"] not in seen:
                seen.add(event["id"])
                pairs |= {(id, event["id"]) for id in matcher.match(event)}
    return pairs, present


# Patterns --------------------------------------------------------------------------------------------


class WatchedPattern:
    """A pattern of versions that follow each other, and a detector that has seen what it has."""

    def __init__(self, pattern):
        self.pattern, self._detector = pattern, td.Detector(time="time")
        self._detector.add_many([pattern.to_written()])

    def is_same(self, pattern):
        """Tell whether a pattern of a later version goes on where this one is."""
        return pattern.since == self.pattern.since and pattern.has_same_matches(self.pattern)

    def take(self, events, until):
        """Take events that are in order, let time pass, and return the id, time and events of each detection."""
        later = [event for event in events if read_time(event) > self.pattern.since]
        detections = [
            *self._detector.detect_many(later),
            *self._detector.on_time(EPOCH + timedelta(microseconds=until)),
        ]
        return [(self.pattern.name, detection.at, tuple(detection.events)) for detection in detections]


class PatternReplay:
    """What the claims of the batches of patterns lead to: detections, counted by id, time and events."""

    def __init__(self, data):
        self._versions = PatternVersions(Path(data) / "checkpoint" / "pattern_versions")
        self._watched, self._waiting, self._seen = {}, [], set()
        self.detections, self.late, self.present = Counter(), 0, []

    def take(self, batch):
        """Take the next batch."""
        patterns = self._versions.read(batch.claim["version"]).patterns
        self.present.append((batch.claim["facts"]["now"], set(patterns)))
        self._watched = {name: self._watch(pattern) for name, pattern in patterns.items()}
        until = batch.watermark * 1000
        fresh = [event for event in batch.events if not (event["id"] in self._seen or self._seen.add(event["id"]))]
        in_time = [event for event in fresh if read_time(event) >= until]
        self.late += len(fresh) - len(in_time)
        events = sorted([*self._waiting, *in_time], key=read_time)
        due = [event for event in events if read_time(event) <= until]
        self._waiting = events[len(due) :]
        if until:
            for watched in self._watched.values():
                self.detections.update(watched.take(due, until))

    def _watch(self, pattern):
        before = self._watched.get(pattern.name)
        return before if before is not None and before.is_same(pattern) else WatchedPattern(pattern)


def read_time(event):
    """Return the time of an event in microseconds."""
    return (datetime.fromisoformat(event["time"]) - EPOCH) // timedelta(microseconds=1)


# What came out ---------------------------------------------------------------------------------------


def cut_owner(id):
    """Return the id of a subscription as its owner knows it."""
    return id.partition("/")[2]


def read_pages(client, path, name, limit):
    """Yield the items of a list of the API."""
    cursor = None
    while True:
        query = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = client.get(path, params=query).raise_for_status().json()
        yield from page[name]
        if not (cursor := page["next"]):
            return


def read_matches(client, ids):
    """Return the matches and the detections that the API shows: pairs, and rows as those of `PatternReplay`.

    Ids are those that the owner knows; whoever replays has `OWNER/ID`, which `cut_owner` makes equal.
    """
    pairs, detections = [], []
    for id in ids:
        for match in read_pages(client, f"/v1/subscriptions/{id}/matches", "matches", 200):
            if match["kind"] == "match":
                pairs.append((id, match["event"]))
            else:
                detections.append((id, datetime.fromisoformat(match["at"]), tuple(match["events"])))
    return sorted(pairs), sorted(detections)
