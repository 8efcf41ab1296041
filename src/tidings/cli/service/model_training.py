"""`tidings service train`: the model that forecasts need, counted over the events of a service or over given files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli import render
from tidings.errors import FileError, TidingsError
from tidings.service.checking import find_model
from tidings.service.events.event_files import list_files
from tidings.service.events.recent import FOLDED
from tidings.service.reading import read_service
from tidings.service.store.opening import open_store
from tidings.service.training import read_history, train_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidings.cli.service.options import AdminOptions


def run(files: Sequence[Path], options: AdminOptions) -> None:
    """Count a history, and put the model where the running service finds it."""
    settings = read_service(options.file, data=options.data, store=options.store or None)
    history = list(files) or list_kept_files(settings.events_folder)
    if not history:
        advice = "name files of a history, JSON lines in the order of time"
        msg = f"there are no events in `{settings.events_folder}`; {advice}"
        raise TidingsError(msg)
    events, fields = 0, settings.events

    def count_events() -> Iterator[list[dict[str, Any]]]:
        nonlocal events
        for batch in read_history(history):
            events += len(batch)
            yield batch

    store = open_store(settings.store_url)
    try:
        model = train_store(store, count_events(), settings.vocabulary, time=fields.time, event_id=fields.id)
    except OSError as problem:
        msg = f"cannot read the history: {problem}"
        raise FileError(msg) from problem
    finally:
        store.close()
    place = find_model(settings)
    model.save(place)
    if options.as_json:
        render.write_json({"model": str(place), "events": events, "files": len(history)})
    else:
        render.note(f"{events:,} events counted; the model is in `{place}`, and a running pipeline takes it by itself")


def list_kept_files(folder: Path) -> list[Path]:
    """Return the files of events that a service keeps, oldest first."""
    places = (folder, folder / FOLDED)
    return [
        path for _, path in sorted((file.number, place / file.name) for place in places for file in list_files(place))
    ]
