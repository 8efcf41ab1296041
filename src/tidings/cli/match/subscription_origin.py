"""Where a command's subscriptions come from: a file, or a snapshot that has its own schema and ontology."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.cli import options as o
from tidings.cli import render

if TYPE_CHECKING:
    from tidings.concepts import Vocabulary
    from tidings.matcher import Matcher
    from tidings.matcher.loading.row_files import LoadReport

FILE_ONLY = ("kind", "schema", "ontology", "regions", "skip_bad")
"""Options, by their parameters' names, that go with a file: a snapshot has its own values."""


@dataclass(frozen=True, slots=True)
class SubscriptionOrigin:
    """The options that say where subscriptions come from: a file with its vocabulary, or a snapshot."""

    subscriptions: o.SubscriptionsOption = None
    snapshot: o.SnapshotOption = None
    kind: o.KindOption = None
    schema: o.SchemaOption = None
    ontology: o.OntologyOption = None
    regions: o.RegionsOption = None
    now: o.NowOption = None
    form: o.FormOption = None
    skip_bad: o.SkipOption = False
    silent: bool = False  # no progress bar: the command prints nothing but JSON

    def open_matcher(self) -> Matcher:
        """Return a matcher with the subscriptions; refusals are an error, or a warning with `--skip-bad`."""
        from tidings.matcher.matcher import Matcher
        from tidings.matcher.registry import ENGINE

        if self.snapshot is not None:
            matcher = Matcher.open(self.snapshot)
            matcher.now = self.now or matcher.now
            return matcher
        vocabulary = load_vocabulary(self.schema, self.ontology, self.regions)
        matcher = Matcher(self.kind or ENGINE, **vocabulary.to_keywords(), now=self.now)
        self._report(self._load(matcher), len(matcher))
        return matcher

    def _load(self, matcher: Matcher) -> LoadReport:
        from tidings.matcher.loading.row_files import RowFile, load_parameters, load_subscriptions

        with (
            RowFile(str(self.subscriptions), form=self.form) as file,
            render.show_loading(file, quiet=self.silent) as loading,
        ):
            columns = file.open_parameters()
            if columns is not None:
                return load_parameters(matcher, loading.read(columns))
            return load_subscriptions(matcher, loading.read(file), watch=loading.watch)

    def _report(self, load: LoadReport, kept: int) -> None:
        name = str(self.subscriptions)
        if load.refused and not self.skip_bad:
            raise load.build_error(name)
        if load.refused:
            render.warn(f"{load.build_error(name)}\ngoing on with the other {kept:,}")
        if load.replaced:
            render.warn(f"{load.replaced:,} ids stand more than once in `{name}`; the last one counts")


def load_vocabulary(schema: Path | None, ontology: Path | None, regions: Path | None) -> Vocabulary:
    """Load the schema, ontology and regions of these files, each where there is one."""
    from tidings.concepts import Ontology, Regions, Vocabulary
    from tidings.model import Schema

    return Vocabulary(
        None if schema is None else Schema.load(schema),
        None if ontology is None else Ontology.load(ontology),
        None if regions is None else Regions.load(regions),
    )


def choose_origin(
    context: typer.Context, origin: SubscriptionOrigin, *, events: str | None = None
) -> SubscriptionOrigin:
    """Return the origin with one source left, or say how the options contradict each other.

    A source on the command line wins over one that a variable names; two on the command line are a mistake.
    """
    file, snapshot = origin.subscriptions, origin.snapshot
    file_typed, snapshot_typed = o.is_typed(context, "subscriptions"), o.is_typed(context, "snapshot")
    if file is not None and snapshot is not None and file_typed != snapshot_typed:
        file, snapshot = (file, None) if file_typed else (None, snapshot)
    has_both = file is not None and snapshot is not None
    missing = "give the subscriptions: --subscriptions FILE or --snapshot FOLDER"
    o.refuse_when(file is None and snapshot is None, missing)
    o.refuse_when(has_both, "--subscriptions and --snapshot exclude each other")
    o.refuse_when(file == "-" == events, "standard input can be the subscriptions or the events, not both")
    for name in FILE_ONLY:
        option = "matcher" if name == "kind" else name.replace("_", "-")
        own = f"a snapshot was made with its own settings; --{option} goes with --subscriptions"
        o.refuse_when(snapshot is not None and o.is_typed(context, name), own)
    if snapshot is not None:
        return SubscriptionOrigin(snapshot=snapshot, now=origin.now)
    return replace(origin, subscriptions=file, snapshot=None, silent=bool(context.params.get("as_json")))
