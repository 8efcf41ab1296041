"""What the machine of test_stores draws: a few owners and ids that meet often, texts that databases stumble over."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tidings.service.store.base import Idempotency, OwnerRules, SubscriptionQuery, Write
from tidings.service.subscription import MatchRow, SubscriptionDraft

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

OWNERS = st.sampled_from(["ann", "ann", "Bob"])
IDS = st.sampled_from(["a", "B", "ä%_"]) | st.sampled_from(["a", "a/b", "it's \\", "straße", "😀", "b" * 200])
BROKEN = st.sampled_from(["nul \0", "half \ud800"])


def rarely(rare, usual):
    """Draw something rare once in twenty times."""
    return st.integers(0, 19).flatmap(lambda number: rare if number == 19 else usual)


WORDS = st.sampled_from(
    ["make = 'Ford'", "STRASSE = 1", "x % 2 = 0", "K = 'ſ'", "_", "ünï", "größer > 3", "", "\n'\"\\"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" and ".join)
LABELS = st.lists(st.sampled_from(["cars", "Größe", "a,b", "%"]), max_size=2).map(tuple)
STATUSES = st.sampled_from(["active", "active", "learning", "paused", "expired"])
KINDS = st.sampled_from(["filter", "filter", "pattern", "forecast"])
SECONDS = st.integers(-5, 20)


def drafts(now, ids=IDS):
    """Drafts, some of which expire soon."""
    return st.builds(
        SubscriptionDraft,
        id=ids,
        kind=KINDS,
        text=rarely(BROKEN, TEXTS),
        notation=st.sampled_from(["text", "json"]),
        name=st.none() | st.sampled_from(["Ünal's", "Cars_%", "none\t"]),
        mode=st.none() | st.just("overlap"),
        horizon=st.none() | st.just("10 own events"),
        threshold=st.none() | st.sampled_from([0.5, 1 / 3]),
        delivery=st.none() | st.just({"transport": "webhook", "secret": "whsec_\0", "more": [1, None, "ü"]}),
        labels=LABELS,
        expires_at=st.none() | SECONDS.map(lambda seconds: now + timedelta(seconds=seconds, microseconds=1)),
        status=STATUSES,
    )


@st.composite
def writes(draw, now, keys):
    """One write of any kind, often of a subscription that is there."""
    owner, id = (
        draw(st.sampled_from(keys))
        if keys and draw(st.integers(0, 3)) == 3
        else (draw(OWNERS), draw(rarely(BROKEN, IDS)))
    )
    action = draw(st.sampled_from(["create", "create", "create", "put", "replace", "status", "remove"]))
    draft = draw(drafts(now, st.just(id))) if action in ("create", "replace", "put") else None
    key = draw(
        st.none() | st.none() | st.builds(Idempotency, st.sampled_from(["k", "ß"]), st.sampled_from(["d1", "d2"]))
    )
    expected = rarely(st.integers(0, 3), st.none())
    return Write(
        action=action,
        owner=owner,
        id=id,
        actor="someone",
        at=now,
        draft=draft,
        status=draw(STATUSES) if action == "status" else None,
        expected=draw(expected),
        most=draw(st.none() | st.integers(1, 6)),
        idempotency=key,
    )


QUERIES = st.builds(
    SubscriptionQuery,
    owner=st.none() | OWNERS,
    label=st.none() | st.sampled_from(["cars", "Größe", "nobody's", "\0"]),
    status=st.none() | STATUSES,
    text=st.none() | st.sampled_from(["ford", "strasse", "GRÖSSER", "%", "_", "\\", "k", "s", "ﬀ", "\0", "ÜNÏ", "\n"]),
    after=st.none() | st.tuples(OWNERS, IDS),
    limit=st.integers(1, 4),
)

RULES = st.lists(
    st.builds(
        OwnerRules,
        owner=OWNERS,
        only=st.none() | st.sampled_from(["a = 1", "b = 2"]),
        subscriptions=st.none() | st.just(7),
        requests_per_second=st.none() | st.just(0.1),
    ),
    max_size=2,
    unique_by=lambda rules: rules.owner,
)


@st.composite
def matches(draw, keys):
    """Rows of matches, most of subscriptions that are there."""
    owner, id = draw(st.sampled_from([*keys, ("ann", "a"), ("nobody \0", "a")]))
    return MatchRow(
        owner=owner,
        subscription=id,
        kind=draw(st.sampled_from(["match", "detection", "forecast"])),
        at=draw(SECONDS.map(lambda seconds: BEGIN + timedelta(seconds=seconds))),
        event=draw(st.none() | st.sampled_from(["e1", "e2", "\0"])),
        events=draw(st.none() | st.just(("e1", "ü"))),
        probability=draw(st.none() | st.just(0.25)),
        values=draw(st.sampled_from([{}, {"price": 3, "make": "\ud800"}, {"price": 4}])),
    )
