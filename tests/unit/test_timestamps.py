"""Moments as people write them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from toolkit.errors import InvalidInput
from toolkit.kit.spoken import parse_timestamp

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
NOW = datetime(2026, 11, 21, 1, 30, tzinfo=UTC)  # the evening of the 20th in São Paulo


def parsed(text):
    return parse_timestamp(text, timezone=SAO_PAULO, now=NOW).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20 18:00", "2026-11-20 21:00:00"),
        ("2026-11-20T18:00:30", "2026-11-20 21:00:30"),
        ("2026-11-20T18:00:00-03:00", "2026-11-20 21:00:00"),
        ("2026-11-20T18:00:00Z", "2026-11-20 18:00:00"),
        (" 2026-11-20T18:00+0200 ", "2026-11-20 16:00:00"),
        ("2026-11-19", "2026-11-20 02:59:59.999999"),  # the end of that day
        ("2026-11-20", "2026-11-21 01:30:00"),  # today: now
    ],
)
def test_a_moment_is_in_the_time_zone_of_the_settings_unless_it_carries_an_offset(text, expected):
    assert parsed(text) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


EXAMPLES, FUTURE = "write it like 2026-11-20", "lies in the future"
REFUSED = {
    **dict.fromkeys(["", "now", "20/11/2026", "2026-13-01", "2026-11-31", "2026-11-20 25:00"], EXAMPLES),
    **dict.fromkeys(["20261120", "2026-W47-5", "0001-01-01x"], EXAMPLES),
    **dict.fromkeys(["2026-11-21", "2026-11-20 22:31", "9999-12-31T00:00:00+00:00"], FUTURE),
}


@pytest.mark.parametrize(("text", "told"), REFUSED.items())
def test_what_is_no_moment_or_was_not_seen_yet_is_refused(text, told):
    with pytest.raises(InvalidInput, match=told):
        parsed(text)
