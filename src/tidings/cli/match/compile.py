"""`tidings compile`: subscriptions into a snapshot, which opens without reading the filters' text again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.match.subscription_origin import Origin


def run(origin: Origin, output: Path, *, as_json: bool) -> None:
    """Write the snapshot and say what it holds."""
    matcher = origin.matcher()
    matcher.save(output)
    if as_json:
        render.out_json({"snapshot": str(output), "subscriptions": len(matcher), "matcher": matcher.kind})
    else:
        render.note(
            f"{len(matcher):,} subscriptions in `{output}`; match with: tidings match --snapshot {output} -e EVENTS"
        )
