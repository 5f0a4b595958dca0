"""`make setup`: uv installs from where pip is configured to install, and what it installed works."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = runpy.run_path(str(ROOT / ".make" / "uv.py"), run_name="uv")
uv_settings = UV["uv_settings"]
for_every_platform = runpy.run_path(str(ROOT / ".make" / "wheels.py"), run_name="wheels")["for_every_platform"]


def listed(tmp_path, configuration="", **environ):
    """Return the output of `pip config list` for a configuration file and variables."""
    file = tmp_path / "pip.conf"
    file.write_text(configuration)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env={**clean, "PIP_CONFIG_FILE": str(file), **environ},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_the_indexes_of_a_pip_configuration_file_are_those_of_uv(tmp_path):
    configuration = "[global]\nindex-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n"
    settings = uv_settings(listed(tmp_path, configuration), {})
    assert settings["UV_DEFAULT_INDEX"] == "https://a.example/simple"
    assert settings["UV_INDEX"].split() == ["https://b.example", "https://c.example"]


def test_a_variable_wins_over_a_file_and_the_section_install_over_global(tmp_path):
    configuration = "[global]\nindex-url = https://a.example\nproxy = http://p\n[install]\nproxy = http://q\n"
    settings = uv_settings(listed(tmp_path, configuration, PIP_INDEX_URL="https://e.example"), {})
    assert (settings["UV_DEFAULT_INDEX"], settings["ALL_PROXY"]) == ("https://e.example", "http://q")


def test_what_the_environment_tells_uv_itself_stays(tmp_path):
    environ = {"UV_DEFAULT_INDEX": "https://mine.example"}
    assert "UV_DEFAULT_INDEX" not in uv_settings(listed(tmp_path, PIP_INDEX_URL="https://e.example"), environ)


def test_folders_of_wheels_are_handed_on_one_by_one(tmp_path):
    assert uv_settings(listed(tmp_path, PIP_FIND_LINKS="/wheels /more"), {})["UV_FIND_LINKS"] == "/wheels,/more"


def test_an_account_without_a_home_goes_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert UV["cache_settings"]({}) == {}
    monkeypatch.setenv("HOME", "/proc/nonexistent")
    assert UV["cache_settings"]({"UV_CACHE_DIR": str(tmp_path)}) == {}
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    assert UV["cache_settings"]({}) == {"UV_NO_CACHE": "1"}


def installed(folder, wheel, files, name="sound", requires=""):
    """Install a package by hand, as a wheel of this kind."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
    (about / "WHEEL").write_text(wheel)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in files))


ANY_PLATFORM = "Root-Is-Purelib: true\nTag: py3-none-any\n"
HASH = f"    --hash=sha256:{'0' * 64}"
LOCK = "\n".join(["sound==1.0 \\", f"{HASH} \\", f"{HASH} \\", HASH, "    # via a"])


@pytest.mark.parametrize(
    ("wheel", "files", "again"),
    [
        pytest.param(ANY_PLATFORM, {"sound.py": b""}, True, id="without the library"),
        pytest.param(ANY_PLATFORM, {"sound.py": b"", "sound/lib.so": b"\x7fELF"}, False, id="with the library"),
        pytest.param("Root-Is-Purelib: false\n", {"sound.py": b""}, False, id="for this platform"),
    ],
)
def test_a_wheel_for_every_platform_is_replaced_where_the_lock_has_others(
    tmp_path, monkeypatch, wheel, files, again
):
    installed(tmp_path, wheel, files)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = for_every_platform(LOCK)
    assert len(found) == again
    assert all(text.count("--hash") == 3 and "via" not in text for text in found)


def test_a_package_that_has_one_wheel_only_is_not_asked_for_again(tmp_path, monkeypatch):
    installed(tmp_path, ANY_PLATFORM, {"sound.py": b""})
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert for_every_platform(LOCK.replace("    --hash", "", 1)) == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"sound.py": b"raise OSError('cannot load library libsndfile.so')"}, "cannot load library libsndfile.so"),
        ({"sound/__init__.py": b"1 / 0"}, "division by zero"),
        ({"sound.py": b"", "sound.libs/libx.so.1": b"\x7fELF"}, "libx.so.1"),
        ({"sound.py": b"import a_package_that_is_optional"}, ""),
        ({"sound.py": b"value = 1"}, ""),
    ],
)
def test_setting_up_names_a_package_that_does_not_work(tmp_path, files, said):
    installed(tmp_path, ANY_PLATFORM, files)
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK)
    ran = subprocess.run(
        [sys.executable, ROOT / ".make" / "imports.py", lock],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == bool(said), ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
