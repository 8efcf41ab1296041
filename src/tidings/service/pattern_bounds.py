"""How large a stored pattern may be: pipelines compile all of them, so none may keep the others waiting.

What compiling costs grows with the edges between configurations, and each edge costs more the more steps and time
conditions the pattern has: what is left of the tree is written down for each. `MOST_WORK` bounds that product, and the
steps are bounded before anything is derived, as is the text before it is parsed. What people write is far from all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.errors import PatternError
from tidings.patterns.compile.derivatives import derive_configurations

if TYPE_CHECKING:
    from tidings.lang import WrittenPattern

MOST_BYTES = 50_000
"""Bytes of its text at most."""

MOST_STEPS = 200
"""Steps of a pattern at most."""

MOST_CONFIGURATIONS = 1024
"""Configurations of a pattern at most."""

MOST_WORK = 50_000
"""What deriving the configurations may take (`EDGE_WORK`): the worst pattern takes some 0.15 s to judge."""


def check_pattern_size(written: WrittenPattern) -> None:
    """Raise `PatternError` for a pattern that takes too long to compile."""
    if (steps := len(written.pattern.steps())) > MOST_STEPS:
        problem = f"the pattern has {steps:,} steps, more than {MOST_STEPS}, which is the limit here"
        msg = f"{problem}; make several patterns of it, or say a step that repeats once: `a{{5}}`"
        raise PatternError(msg)
    derive_configurations(written.pattern, written.mode, budget=MOST_CONFIGURATIONS, most_work=MOST_WORK)
