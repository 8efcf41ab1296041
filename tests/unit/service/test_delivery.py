"""Deliveries: every transport has its options, mistakes are named by path, secrets stay where they belong."""

import pickle
from datetime import UTC, datetime

import pytest

from tidings.service.checking import SubscriptionChecker
from tidings.service.delivery import SECRETS, TRANSPORTS, check_delivery, hide_secrets, keep_secret, names_secret
from tidings.service.refusals import SubscriptionRefused
from tidings.service.settings import EventSettings, ServiceSettings

SECRET = "whsec_" + "QUJD" * 8
HOOK = {"transport": "webhook", "url": "https://example.org/hook?x=1", "secret": SECRET}
DEFAULTS = {"schedule": "immediate", "group": "subscription"}


@pytest.mark.parametrize(
    "delivery",
    [
        HOOK,
        {"transport": "webhook", "url": "http://[::1]:8080/"},
        {"transport": "email", "to": "ada@example.org"},
        {"transport": "file"},
        {"transport": "file", "path": "mine/matches.jsonl"},
        {"transport": "kafka", "topic": "matches"},
        {"transport": "stream"},
        {"transport": "apprise", "url": "ntfy://topic"},
        {"transport": "stream", "group": "owner", "schedule": "every 5 min"},
    ],
)
def test_what_a_transport_needs_is_enough(delivery):
    checked, complaints = check_delivery(delivery)
    assert complaints == []
    assert checked == DEFAULTS | delivery
    assert check_delivery(checked) == (checked, [])


@pytest.mark.parametrize(
    ("delivery", "paths"),
    [
        ("webhook", [""]),
        ([], [""]),
        ({}, ["transport"]),
        ({"transport": "pigeon"}, ["transport"]),
        ({"transport": ["webhook"]}, ["transport"]),
        ({"transport": "webhook"}, ["url"]),
        ({"transport": "webhook", "url": 5}, ["url"]),
        ({"transport": "webhook", "url": "example.org"}, ["url"]),
        ({"transport": "webhook", "url": "https://"}, ["url"]),
        ({"transport": "webhook", "url": "https://x:99999/"}, ["url"]),
        ({"transport": "webhook", "url": "https://x/\n"}, ["url"]),
        ({"transport": "webhook", "url": "https://me:secret@x/"}, ["url"]),
        ({"transport": "webhook", "url": "file:///etc/passwd"}, ["url"]),
        ({"transport": "webhook", "url": "https://x/" + "y" * 2000}, ["url"]),
        (HOOK | {"secret": "short"}, ["secret"]),
        (HOOK | {"secret": "whsec_!!!"}, ["secret"]),
        (HOOK | {"secret": "whsec_QUJD"}, ["secret"]),
        ({"transport": "email", "to": "nobody"}, ["to"]),
        ({"transport": "email", "to": "a@b\r\nBcc: c@d"}, ["to"]),
        ({"transport": "file", "path": "/etc/passwd"}, ["path"]),
        ({"transport": "file", "path": "a/../../b"}, ["path"]),
        ({"transport": "file", "path": "a//b"}, ["path"]),
        ({"transport": "file", "path": "./a"}, ["path"]),
        ({"transport": "file", "path": "a/"}, ["path"]),
        ({"transport": "file", "path": "ä" * 128}, ["path"]),
        ({"transport": "file", "path": "c:\\x"}, ["path"]),
        ({"transport": "kafka", "topic": "a b"}, ["topic"]),
        ({"transport": "apprise", "url": "topic"}, ["url"]),
        ({"transport": "stream", "ulr": "x", "group": "all", "schedule": "now"}, ["ulr", "schedule", "group"]),
        ({"transport": "stream", "schedule": {"cron": "0 8 * * *", "zone": "Mars/Base"}}, ["schedule"]),
    ],
)
def test_all_mistakes_are_named_by_their_paths(delivery, paths):
    assert [path for path, _ in check_delivery(delivery)[1]] == paths


def test_matches_do_not_go_where_the_events_of_the_service_are():
    delivery = {"transport": "kafka", "topic": "ads"}
    assert check_delivery(delivery, events_topic="matches")[1] == []
    assert [path for path, _ in check_delivery(delivery, events_topic="ads")[1]] == ["topic"]
    settings = ServiceSettings(events=EventSettings(to="kafka", servers="b:1", topic="ads"))
    body = {"id": "a", "filter": "x = 1", "delivery": delivery}
    for checker in (SubscriptionChecker.of(settings), pickle.loads(pickle.dumps(SubscriptionChecker.of(settings)))):
        with pytest.raises(SubscriptionRefused) as caught:
            checker.check(body, now=datetime(2026, 1, 1, tzinfo=UTC))
        assert [mistake.field for mistake in caught.value.errors] == ["delivery.topic"]


def test_no_complaint_quotes_a_secret():
    for secret in ("hunter2", "whsec_hunter2", "user:hunter2@x"):
        for transport, option in SECRETS.items():
            complaints = check_delivery({"transport": transport, "url": "x", option: secret})[1]
            assert "hunter2" not in str(complaints)


def test_secrets_are_options_of_their_transports():
    assert all(option in TRANSPORTS[transport] for transport, option in SECRETS.items())


def test_a_secret_is_hidden_and_kept_for_the_same_address_only():
    before, _ = check_delivery(HOOK)
    shown = hide_secrets(before)
    assert "secret" not in shown
    assert keep_secret(shown, before) == before
    assert keep_secret(shown | {"group": "owner"}, before)["secret"] == SECRET
    for other in ({"url": "https://evil.example/"}, {"transport": "stream"}, {"secret": None}):
        assert keep_secret(shown | other, before) == shown | other
    assert keep_secret(shown, None) == shown
    assert keep_secret("text", before) == "text"
    assert hide_secrets(None) is None


def test_a_change_names_a_secret_or_does_not():
    before, _ = check_delivery(HOOK)
    assert names_secret({"secret": None}, before)
    assert not names_secret({"url": "https://x/"}, before)
    assert not names_secret(None, before)
    assert not names_secret({"secret": "x"}, None)
