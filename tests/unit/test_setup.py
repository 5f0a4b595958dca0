"""`make setup`: uv installs from where pip is configured to install."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
uv_settings = runpy.run_path(str(ROOT / ".make" / "uv.py"), run_name="uv")["uv_settings"]


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
