"""What `explain` says of the engine: the plan, the cost of each part, and what makes it slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.engine.state import State


def described(state: State, sampled: bool) -> dict[str, object]:
    """Return the plan of a state in plain values."""
    return {
        "segments": [{"subscriptions": len(part), "rows": dict(part.segment.choice)} for part in state.parts],
        "waiting": len(state.waiting),
        "statistics": "events" if sampled else "subscriptions",
    }
