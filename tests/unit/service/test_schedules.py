"""Schedules: at once, every so often, or by cron; what is none says which field is wrong."""

import pytest

from tidings.errors import TidingsError
from tidings.service.schedules import check_cron, check_interval, check_schedule

BAD_ZONES = [{"cron": "* * * * *", **zone} for zone in ({"zone": "x"}, {"zone": 5}, {"tz": "UTC"})]


@pytest.mark.parametrize(
    "cron",
    [
        "* * * * *",
        "0 8 * * *",
        "*/15 0-6,22 1,15 jan-mar mon-fri",
        "59 23 31 12 7",
        "0 0 1 1 0",
        "5-10/2 * * * SUN",
        "00 08 * * *",
    ],
)
def test_cron_as_cron_has_it(cron):
    check_cron(cron)
    assert check_schedule({"cron": cron, "zone": "Europe/Zurich"}) == {"cron": cron, "zone": "Europe/Zurich"}


@pytest.mark.parametrize(
    ("cron", "field"),
    [
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * mon *", "month"),
        ("* * * * 8", "day of the week"),
        ("*/0 * * * *", "minute"),
        ("*/60 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("1, * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1-2-3 * * * *", "minute"),
        ("a * * * *", "minute"),
        ("² * * * *", "minute"),
        ("* * * *", "five fields"),
        ("", "five fields"),
        ("@daily", "five fields"),
        ("* " * 200, "five fields"),
    ],
)
def test_what_is_no_cron_says_which_field(cron, field):
    with pytest.raises(TidingsError, match=field):
        check_cron(cron)


@pytest.mark.parametrize(("text", "seconds"), [("1 s", 1), ("5 min", 300), ("2 h", 7200), ("7 days", 604_800)])
def test_an_interval_is_a_span_of_time(text, seconds):
    assert check_interval(text) == seconds * 10**6
    assert check_schedule(f"every {text}") == f"every {text}"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "every",
        "every ",
        "every now",
        "every 1 ms",
        "every 400 days",
        "5 min",
        5,
        None,
        [],
        {},
        {"cron": 5},
        *BAD_ZONES,
    ],
)
def test_what_is_no_schedule_is_refused(value):
    with pytest.raises(TidingsError):
        check_schedule(value)
