"""The bounds of owners, ready to be asked of matches that are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidings.service.owner_bounds import OwnerView

if TYPE_CHECKING:
    from tidings.service.api.state import ApiState

PART = "views"
"""The name of the views among the parts of the API's state: by owner, as they were last asked for."""


async def get_view(state: ApiState, owner: str) -> OwnerView | None:
    """Return what an owner may see; None: everything."""
    rules = await state.keys.get_rules(owner)
    views: dict[str, OwnerView] = state.parts.setdefault(PART, {})
    if rules.only is None:
        views.pop(owner, None)
        return None
    view = views.get(owner)
    if view is None or view.only != rules.only:
        view = views[owner] = await state.access.work(OwnerView, rules.only, state.settings.vocabulary)
    return view
