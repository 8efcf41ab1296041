"""Where a command's subscriptions come from: a file, or a snapshot that carries its own schema and ontology."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tidings.cli import render
from tidings.cli.options import FileForm

if TYPE_CHECKING:
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_files import Loading

FROM_FILE_ONLY = ("kind", "schema", "ontology", "regions", "skip_bad")
"""What a snapshot has decided already, by the names of the parameters."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A file of subscriptions and what its names mean, or a snapshot."""

    subscriptions: str | None = None
    snapshot: Path | None = None
    kind: str | None = None
    schema: Path | None = None
    ontology: Path | None = None
    regions: Path | None = None
    form: FileForm | None = None
    skip_bad: bool = False
    now: datetime | None = None
    quiet: bool = False  # no bar: nothing but JSON was asked for

    def matcher(self) -> Matcher:
        """Return a matcher that holds the subscriptions; refusals are an error, or a warning with `--skip-bad`."""
        from tidings.matcher.matcher import DEFAULT_KIND, Matcher

        if self.snapshot is not None:
            made = Matcher.open(self.snapshot)
            made.now = self.now or made.now
            return made
        known = surroundings(self.schema, self.ontology, self.regions)
        made = Matcher(self.kind or DEFAULT_KIND, **known, now=self.now)
        self._report(self._loaded(made), len(made))
        return made

    def _loaded(self, matcher: Matcher) -> Loading:
        from tidings.matcher.loading.row_files import Form, RowFile, load_parameters, load_subscriptions

        form = Form(self.form) if self.form else None
        with (
            RowFile(str(self.subscriptions), form=form) as file,
            render.loading(file, quiet=self.quiet) as loading,
        ):
            columns = file.parameters()
            if columns is not None:
                return load_parameters(matcher, loading.read(columns))
            return load_subscriptions(matcher, loading.read(file), watch=loading.watch)

    def _report(self, done: Loading, kept: int) -> None:
        name = str(self.subscriptions)
        if done.refused and not self.skip_bad:
            raise done.error(name)
        if done.refused:
            render.warning(f"{done.error(name)}\ngoing on with the other {kept:,}")
        if done.replaced:
            render.warning(f"{done.replaced:,} ids stand more than once in `{name}`; the last one counts")


def surroundings(schema: Path | None, ontology: Path | None, regions: Path | None) -> dict[str, Any]:
    """Load what says what names mean, as the keywords that everything takes."""
    found: dict[str, Any] = {}
    if schema is not None:
        from tidings.model import Schema

        found["schema"] = Schema.load(schema)
    if ontology is not None:
        from tidings.concepts import Ontology

        found["ontology"] = Ontology.load(ontology)
    if regions is not None:
        from tidings.concepts import Regions

        found["regions"] = Regions.load(regions)
    return found


def chosen(context: typer.Context, origin: Origin, *, events: str | None = None) -> Origin:
    """Return the origin with one source left, or say how the options contradict each other.

    What was typed wins over what a variable says; two that were typed are a mistake.
    """
    file, snapshot = origin.subscriptions, origin.snapshot
    if file is not None and snapshot is not None and _typed(context, "subscriptions") != _typed(context, "snapshot"):
        file, snapshot = (file, None) if _typed(context, "subscriptions") else (None, snapshot)
    if (wrong := _contradiction(context, file, snapshot, events)) is not None:
        raise typer.BadParameter(wrong)
    if snapshot is not None:
        return Origin(snapshot=snapshot, now=origin.now)
    return replace(origin, subscriptions=file, snapshot=None, quiet=bool(context.params.get("as_json")))


def _contradiction(context: typer.Context, file: str | None, snapshot: Path | None, events: str | None) -> str | None:
    if file is None and snapshot is None:
        return "give the subscriptions: --subscriptions FILE or --snapshot FOLDER"
    if file is not None and snapshot is not None:
        return "--subscriptions and --snapshot exclude each other"
    if file == "-" == events:
        return "standard input can be the subscriptions or the events, not both"
    extra = [name for name in FROM_FILE_ONLY if snapshot is not None and _typed(context, name)]
    if extra:
        option = "matcher" if extra[0] == "kind" else extra[0].replace("_", "-")
        return f"a snapshot was made with its own settings; --{option} goes with --subscriptions"
    return None


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
