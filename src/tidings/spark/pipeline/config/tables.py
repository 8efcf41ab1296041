"""One table of `pipeline.toml`, held against the description of its keys.

`Reader` keeps what every table needs (the folder, the variables, the mistakes so far). A key that is wrong is told
of once and left out; it still counts as given, so that nothing is told that only follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.concepts import did_you_mean, nearest
from tidings.spark.pipeline.config.key_values import Wrong, settings, text_of, value_of, word_for
from tidings.spark.pipeline.config.keys import TAKEN, TOP, Key, Kind, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tidings.spark.pipeline.config.variables import Variables


@dataclass(slots=True)
class Said:
    """What a table says: its good values, and the keys that were given, good or not."""

    place: str  # "[source]", as mistakes name it
    values: dict[str, Any] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    sound: bool = True  # whether nothing in it was wrong

    def __getitem__(self, name: str) -> Any:
        """Return a good value, or nothing."""
        return self.values.get(name)

    def lacks(self, name: str) -> bool:
        """Tell whether the key does not stand in the file at all; one that is wrong does."""
        return name not in self.given


class Reader:
    """Reads tables, and collects what is wrong with them."""

    def __init__(self, folder: Path, variables: Variables) -> None:
        """Read paths from this folder and variables from there."""
        self.folder, self.variables = folder, variables
        self.mistakes: list[str] = []

    def wrong(self, said: Said, name: str, text: str) -> None:
        """Note a mistake with a key of a table."""
        said.sound = False
        self.mistakes.append(f"{said.place} `{name}` {text}".lstrip())

    def table(self, table: Table, said: Any, *, place: str | None = None) -> Said:
        """Read a table with described keys."""
        found = Said(f"[{table.name}]" if place is None else place)
        if not self._is_table(found, said):
            found.given.update(table.names)  # nobody knows what it would have said
        else:
            found.given.update(said)
            for name, value in said.items():
                self._key(table, found, name, value)
            self._belonging(table, found)
        return found

    def texts(self, section: str, said: Any) -> Said:
        """Read a table of the user's own keys, each of them a text."""
        found = Said(f"[{section}]")
        for name, value in said.items() if self._is_table(found, said) else ():
            try:
                found.values[name] = text_of(value, self.variables)
            except Wrong as wrong:
                self._note(found, name, wrong)
        return found

    def settings(self, said: Any, *, place: str, taken: Mapping[str, str] = TAKEN) -> Said:
        """Read a table of settings for Spark; `taken` are those that a key of ours says already."""
        found = Said(place)
        for name, value in settings(said, self.variables) if self._is_table(found, said) else ():
            if isinstance(value, Wrong):
                self._note(found, name, value)
            elif name in taken:
                self.wrong(found, name, f"is not set here; the key `{taken[name]}` says it")
            else:
                found.values[name] = value
        return found

    def _key(self, table: Table, found: Said, name: str, said: Any) -> None:
        if name not in table.names:
            self._unknown(table, found, name)
            return
        key = table[name]
        if key.kind is Kind.SETTINGS:
            deeper = self.settings(said, place=_below(found.place, name))
            found.values[name], found.sound = deeper.values, found.sound and deeper.sound
            return
        try:
            found.values[name] = value_of(key, said, folder=self.folder, variables=self.variables)
        except Wrong as wrong:
            self._note(found, name, wrong)

    def _note(self, found: Said, name: str, wrong: Wrong) -> None:
        for text in wrong.texts:
            self.wrong(found, name, text)

    def _unknown(self, table: Table, found: Said, name: str) -> None:
        hint = did_you_mean(name, table.names) or f"; the keys are {', '.join(table.names)}"
        if name in TOP.names:
            hint = " of this table; it stands at the top of the file, before the first table"
        self.wrong(found, name, f"is not a key{hint}")
        found.given.add(nearest(name, table.names) or name)  # meant, so it is not missing as well

    def _is_table(self, found: Said, said: Any) -> bool:
        if isinstance(said, dict):
            return True
        found.sound = False
        self.mistakes.append(f"{found.place} must be a table, not {word_for(said)}")
        return False

    # What belongs to what ------------------------------------------------------------------------

    def _belonging(self, table: Table, found: Said) -> None:
        """Hold the keys against the table's kind, or against the one of the rivals that was given."""
        self._missing(found, [key for key in table.keys if not key.of], "")
        if table.rivals:
            self._rivals(table, found)
        elif (kind := found["kind"]) is not None:
            self._of_kind(table, found, kind, f'kind = "{kind}"')

    def _rivals(self, table: Table, found: Said) -> None:
        chosen = [name for name in table.rivals if not found.lacks(name)]
        if len(chosen) == 1:
            self._of_kind(table, found, chosen[0], f"`{chosen[0]}`")
            return
        found.sound = False
        listed = ", ".join(f"`{name}`" for name in table.rivals)
        both = f", not {' and '.join(f'`{name}`' for name in chosen)}" if chosen else ""
        self.mistakes.append(f"{found.place} needs exactly one of {listed}{both}")

    def _of_kind(self, table: Table, found: Said, kind: str, shown: str) -> None:
        for key in table.keys:
            if key.of and kind not in key.of and key.name in found.values:
                self.wrong(found, key.name, f"does not go with {shown}; it is for {', '.join(key.of)}")
        self._missing(found, [key for key in table.keys if kind in key.of], f" with {shown}")

    def _missing(self, found: Said, keys: Iterable[Key], when: str) -> None:
        for key in keys:
            optional = key.name == "columns" and found["value"] == "text"
            if key.required and found.lacks(key.name) and not optional:
                self.wrong(found, key.name, f"is missing{when}: {_phrase(key.help)}")


def _below(place: str, name: str) -> str:
    """Return how TOML writes a table within a table: `[source.options]`, and `[sink.options]` within `[[sink]]`."""
    head, _, number = place.replace("[[", "[").replace("]]", "]").partition("]")
    return f"{head}.{name}]{number}"


def _phrase(help: str) -> str:
    """Return the first sentence, as the end of another."""
    first = help.partition(". ")[0].rstrip(".")
    return first[0].lower() + first[1:]
