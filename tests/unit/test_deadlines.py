"""Deadlines count business days of Brazil, by code and group, in the time zone of the settings."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import holidays
import pytest

from toolkit.contract.deadlines import Deadlines, is_business_day
from toolkit.errors import SettingsError
from toolkit.settings import Settings

SAO_PAULO = ZoneInfo("America/Sao_Paulo")


@pytest.mark.parametrize(
    ("day", "counts"),
    [
        ("2026-11-19", True),
        ("2026-11-20", False),  # a holiday of the country
        ("2026-11-21", False),  # a Saturday
        ("2026-02-17", True),  # carnival is no national holiday
        ("2026-06-04", True),  # nor is Corpus Christi
        ("2026-07-09", True),  # nor are the days of the states
    ],
)
def test_week_ends_and_holidays_do_not_count(day, counts):
    assert is_business_day(date.fromisoformat(day)) is counts


def test_each_business_day_of_a_century_is_one_to_a_calendar_of_others():
    known, first = holidays.country_holidays("BR"), date(1981, 1, 1)
    days = [first + timedelta(days=number) for number in range(36_525)]
    assert [day for day in days if is_business_day(day) != known.is_working_day(day)] == []


def test_a_finding_has_the_days_of_its_code_and_group():
    deadlines = Deadlines(SAO_PAULO, {"MISSING_POV": 1, "MISSING_POV/D": 0})
    assert [deadlines.days("MISSING_POV", group) for group in "AD"] == [1, 0]
    assert deadlines.days("GROUP_UNKNOWN", "E") == 2
    assert deadlines.day_of(datetime(2026, 11, 18, 1, 30, tzinfo=UTC)) == date(2026, 11, 17)


def test_settings_name_codes_of_findings():
    settings = Settings.from_environment({"TOOLKIT_DEADLINES": "MISSING_POV=3, MISSING_AUT/D=10"})
    assert settings.deadlines == {"MISSING_POV": 3, "MISSING_AUT/D": 10}
    for wrong in ("POV=3", "EXPIRED=3", "MISSING_POV", "MISSING_POV=-1"):
        with pytest.raises(SettingsError, match="TOOLKIT_DEADLINES"):
            Settings.from_environment({"TOOLKIT_DEADLINES": wrong})
