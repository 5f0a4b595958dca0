"""Settings: what is read and refused, and that secrets stay out of sight; moments, deadlines and the home."""

import os
import stat
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import holidays
import pytest

from toolkit.atomic_files import PrivateFolder
from toolkit.contract.deadlines import Deadlines, is_business_day
from toolkit.embedded.servers import prepare
from toolkit.errors import InvalidInput, SettingsError
from toolkit.kit import spoken
from toolkit.kit.process import signed_in_account
from toolkit.kit.spoken import ProgressBar, parse_timestamp
from toolkit.settings import Settings


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_usual_database_addresses_are_understood(scheme):
    settings = Settings.from_environment({"DATABASE_URL": f"{scheme}://user:pw@host/db"})
    assert settings.database_url == "postgresql+psycopg://user:pw@host/db"


def test_an_unescaped_password_is_in_no_traceback():
    with pytest.raises(SettingsError, match="write @ as %40") as caught:
        Settings.from_environment({"DATABASE_URL": "postgresql://u:p@sEcret:w/rd@h/d"})
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_secrets_are_not_shown():
    given = {"DATABASE_URL": "postgresql://u:sEcret@h/d", "TOOLKIT_JWT_SECRET": "a sEcret"}
    given |= {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "another sEcret"}
    assert "sEcret" not in repr(Settings.from_environment(given))


def test_an_account_without_a_home_or_a_name_as_containers_have_works_with_shared_services(monkeypatch):
    def no_entry(uid):
        raise KeyError(uid)

    for name in ("HOME", "XDG_DATA_HOME", "USER", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    monkeypatch.setattr("os.geteuid", lambda: 4_000_000)
    settings = Settings.from_environment({"DATABASE_URL": "postgresql://user@host/database"})
    assert settings.home == Path("/nonexistent/evidence-toolkit")
    with pytest.raises(SettingsError, match=r"TOOLKIT_HOME: .*~/data.* Write the path in full"):
        Settings.from_environment({"TOOLKIT_HOME": "~/data"})
    assert signed_in_account() == f"uid {os.getuid()}"


SAO_PAULO = ZoneInfo("America/Sao_Paulo")


def test_each_business_day_of_a_century_is_one_to_a_calendar_of_others():
    known, first = holidays.country_holidays("BR"), date(1981, 1, 1)
    days = [first + timedelta(days=number) for number in range(36_525)]
    assert [day for day in days if is_business_day(day) != known.is_working_day(day)] == []


def test_a_finding_has_the_days_of_its_code_and_group():
    given = Settings.from_environment({"TOOLKIT_DEADLINES": "MISSING_POV=1, MISSING_POV/D=0"})
    deadlines = Deadlines(SAO_PAULO, given.deadlines)
    assert [deadlines.days("MISSING_POV", group) for group in "AD"] == [1, 0]
    assert deadlines.days("GROUP_UNKNOWN", "E") == 2
    assert deadlines.day_of(datetime(2026, 11, 18, 1, 30, tzinfo=UTC)) == date(2026, 11, 17)


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


def test_a_bar_in_a_cell_leaves_no_red_box(monkeypatch, capsys):
    shell = SimpleNamespace(get_parent=lambda: {"content": {"allow_stdin": True}})
    monkeypatch.setattr(spoken, "notebook_shell", lambda: shell)
    ProgressBar(sys.stderr).begin("Audit", 10, "sales")
    printed = capsys.readouterr()
    assert ("Audit" in printed.out, printed.err) == (True, "")


def test_a_moment_is_one_that_a_database_takes():
    moment = parse_timestamp("2026-11-20T18:00+16:00", timezone=SAO_PAULO, now=NOW)
    assert moment.isoformat() == "2026-11-19T23:00:00-03:00"
    for text in ("1969-12-31", "2026-11-22"):
        with pytest.raises(InvalidInput, match="in the future or before 1970"):
            parsed(text)


def test_a_home_that_anybody_may_write_is_closed_to_others(tmp_path):
    tmp_path.chmod(0o777)
    prepare(tmp_path)
    assert not tmp_path.stat().st_mode & stat.S_IWOTH


def test_what_others_call_a_draft_is_left_alone(tmp_path):
    elsewhere, parent = tmp_path / "elsewhere", tmp_path / "shared"
    elsewhere.mkdir()
    parent.mkdir()
    (parent / ".toolkit-draft-planted").symlink_to(elsewhere)
    with PrivateFolder(parent) as folder:
        assert folder.is_dir()
    assert list(elsewhere.iterdir()) == []
