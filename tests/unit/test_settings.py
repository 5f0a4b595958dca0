"""The environment: what is read, what is refused, and that secrets stay out of sight."""

import os
from pathlib import Path

import pytest

from toolkit.errors import SettingsError
from toolkit.kit.process import signed_in_account
from toolkit.settings import Settings, file_mode_of


def test_an_empty_environment_stands_for_the_embedded_services():
    settings = Settings.from_environment({})
    assert settings.database_url is None
    assert settings.evidence_bucket is None
    assert str(settings.timezone) == "America/Sao_Paulo"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_the_usual_database_addresses_are_understood(scheme):
    settings = Settings.from_environment({"DATABASE_URL": f"{scheme}://user:pw@host/db"})
    assert settings.database_url == "postgresql+psycopg://user:pw@host/db"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "sqlite:///x.db"),
        ("TOOLKIT_TIMEZONE", "Mars/Olympus"),
        ("TOOLKIT_TIMEZONE", "../etc/passwd"),
        ("AWS_ENDPOINT_URL", "http://user:pass-word@127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_STS", "https://token@sts.example.com"),
        ("AWS_ENDPOINT_URL", "s3.example.com"),
        ("AWS_ENDPOINT_URL_S3", "https://"),
        ("AWS_CREDENTIAL_EXPIRATION", "2026-11-20T18:00:00"),
        ("AWS_ACCESS_KEY_ID", "AKIA"),  # without its secret
        ("TOOLKIT_UNASSIGNED_SALES", "some"),
        ("TOOLKIT_JWT_MAX_TTL", "forever"),
        ("TOOLKIT_QUOTA_REQUESTS", "0"),
        ("TOOLKIT_TRUSTED_PROXIES", "proxy.example.com"),
        ("TOOLKIT_UPLOAD_TTL", "0"),
        ("TOOLKIT_UPLOAD_TTL", "1h"),
        ("TOOLKIT_UPLOAD_MAX_BYTES", "-1"),
    ],
)
def test_a_wrong_value_names_the_variable(name, value):
    with pytest.raises(SettingsError, match=name) as refused:
        Settings.from_environment({name: value})
    assert "pass-word" not in str(refused.value)


@pytest.mark.parametrize("mode", ["0440", "0755", "rw", "888", "-640"])
def test_a_mode_that_is_none_is_refused(mode):
    with pytest.raises(SettingsError, match="TOOLKIT_FILE_MODE"):
        file_mode_of({"TOOLKIT_FILE_MODE": mode})


@pytest.mark.parametrize(
    "rest",
    [
        "u:pa@sEcret@host/db",
        "u:sEcret@host:notaport/db",
        "u:p@sEcret:w/rd@h/d",
        "u:p@sEcret/word@h/d",
        "[::sEcret/db",
        "u:sEcret@/db?host=/tmp/a,b&port=5432",
    ],
)
def test_an_unescaped_password_is_refused_and_not_quoted(rest):
    with pytest.raises(SettingsError, match="write @ as %40") as caught:
        Settings.from_environment({"DATABASE_URL": f"postgresql://{rest}"})
    assert "sEcret" not in str(caught.value)
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
