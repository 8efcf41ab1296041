"""`tidings compile`: a snapshot of subscriptions, which opens without parsing their filters again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.cli import render

if TYPE_CHECKING:
    from pathlib import Path

    from tidings.cli.match.subscription_origin import SubscriptionOrigin


def run(origin: SubscriptionOrigin, output: Path, *, as_json: bool) -> None:
    """Write the snapshot and print what it has."""
    matcher = origin.open_matcher()
    matcher.save(output)
    if as_json:
        render.write_json({"snapshot": str(output), "subscriptions": len(matcher), "matcher": matcher.kind})
    else:
        render.note(
            f"{len(matcher):,} subscriptions in `{output}`; match with: tidings match --snapshot {output} -e EVENTS"
        )
