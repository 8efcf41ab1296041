"""Keys: random, recognisable, stored as digests, and for something that exists."""

from datetime import UTC, datetime, timedelta

import pytest

from tidings.errors import TidingsError
from tidings.service.keys import PREFIX, check_scopes, digest_key, is_valid, make_key

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_key_is_random_and_its_record_does_not_have_it():
    keys = [make_key("bob", ["read"], at=NOW) for _ in range(20)]
    assert len({text for text, _ in keys}) == len({record.id for _, record in keys}) == 20
    for text, record in keys:
        assert text.startswith(PREFIX)
        assert len(text) == len(PREFIX) + 43  # 256 bits in base64
        assert record.digest == digest_key(text)
        assert text not in repr(record)


def test_a_key_is_good_until_it_expires_or_is_revoked():
    from dataclasses import replace

    _, key = make_key("bob", ["read"], at=NOW, expires_at=NOW + timedelta(seconds=5))
    assert is_valid(key, NOW)
    assert not is_valid(key, NOW + timedelta(seconds=5))
    assert not is_valid(replace(key, revoked_at=NOW), NOW)


@pytest.mark.parametrize(
    ("scopes", "words"), [([], "for something"), (["reed"], "did you mean `read`"), (["x", "read"], "`x`")]
)
def test_a_scope_that_is_none_is_refused(scopes, words):
    with pytest.raises(TidingsError, match=words):
        check_scopes(scopes)


def test_an_owner_that_is_none_is_refused():
    with pytest.raises(TidingsError, match="owner"):
        make_key("a/b", ["read"], at=NOW)
