"""How many examples a generated test takes: a share of the profile's, so that one setting scales them all."""

from typing import Any

from hypothesis import settings


def examples(count: int, **others: Any) -> settings:
    """Return settings for `count` examples where the profile has a hundred, and at least ten."""
    return settings(max_examples=max(10, count * settings().max_examples // 100), **others)
