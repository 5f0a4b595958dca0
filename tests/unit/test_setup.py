"""`make setup` and the extras: what is installed from where, that it works, what who lacks it is told."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from toolkit.errors import NotInstalled
from toolkit.extras import Extra, modules_of, require
from toolkit.reports import FORMATS

EXTRAS = get_args(Extra)
ROOT = Path(__file__).parents[2]
UV = runpy.run_path(str(ROOT / ".make" / "uv.py"), run_name="uv")
uv_settings = UV["uv_settings"]
WHEELS = runpy.run_path(str(ROOT / ".make" / "wheels.py"), run_name="wheels")
for_every_platform = WHEELS["for_every_platform"]


INDEXES = "index-url = https://a.example/simple\nextra-index-url =\n  https://b.example\n  https://c.example\n"


@pytest.mark.parametrize(
    ("configuration", "environ", "expected"),
    [
        (
            f"[global]\n{INDEXES}",
            {},
            {"UV_DEFAULT_INDEX": "https://a.example/simple", "UV_INDEX": "https://b.example https://c.example"},
        ),
        (
            f"[global]\n{INDEXES}proxy = http://p\n[install]\nproxy = http://q\n",
            {"PIP_INDEX_URL": "https://e.example"},
            {"UV_DEFAULT_INDEX": "https://e.example", "ALL_PROXY": "http://q"},
        ),
        ("", {"PIP_FIND_LINKS": "/wheels /more"}, {"UV_FIND_LINKS": "/wheels,/more"}),
    ],
    ids=["indexes", "a variable wins over a file, install over global", "folders of wheels"],
)
def test_what_pip_is_told_is_told_to_uv_but_for_what_uv_itself_is_told(tmp_path, configuration, environ, expected):
    file = tmp_path / "pip.conf"
    file.write_text(configuration)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    listed = subprocess.check_output(
        [sys.executable, "-m", "pip", "config", "list"],
        env=clean | {"PIP_CONFIG_FILE": str(file)} | environ,
        text=True,
    )
    found = uv_settings(listed, {})
    assert {name: " ".join(found[name].split()) for name in expected} == expected
    assert not set(expected) & set(uv_settings(listed, dict.fromkeys(expected, "mine")))


@pytest.mark.parametrize("lock", sorted(ROOT.glob("*.lock")), ids=lambda lock: lock.name)
def test_each_locked_package_has_a_hash(lock):
    packages = WHEELS["requirements"](lock.read_text("utf-8"))
    assert packages
    assert [name for (name, _), requirement in packages.items() if "--hash=sha256:" not in requirement] == []


def installed(folder, wheel, files):
    """Install a package by hand, as a wheel of this kind."""
    about = folder / "sound-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sound\nVersion: 1.0\n")
    (about / "WHEEL").write_text(wheel)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (about / "RECORD").write_text("".join(f"{path},,\n" for path in files))


ANY_PLATFORM = "Root-Is-Purelib: true\nTag: py3-none-any\n"
HASH = f"    --hash=sha256:{'0' * 64}"
LOCK = "\n".join(["sound==1.0 \\", f"{HASH} \\", f"{HASH} \\", HASH, "    # via a"])


@pytest.mark.parametrize(
    ("wheel", "files", "lock", "again"),
    [
        (ANY_PLATFORM, {"sound.py": b""}, LOCK, True),
        (ANY_PLATFORM, {"sound.py": b"", "lib.so": b"\x7fELF"}, LOCK, False),
        ("Root-Is-Purelib: false\n", {"sound.py": b""}, LOCK, False),
        (ANY_PLATFORM, {"sound.py": b""}, LOCK.replace("    --hash", "", 1), False),
    ],
    ids=["without the library", "with the library", "for this platform", "no other"],
)
def test_a_wheel_for_every_platform_is_replaced_where_the_lock_has_others(
    tmp_path, monkeypatch, wheel, files, lock, again
):
    installed(tmp_path, wheel, files)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = for_every_platform(lock)
    assert len(found) == again
    assert all(text.count("--hash") == 3 and "via" not in text for text in found)


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


def test_what_the_shell_says_for_other_python_projects_stays_out_of_make():
    others = {"PYTHONPATH": "elsewhere", "PIP_USER": "1", "PIP_TARGET": "elsewhere"}
    target = ["make", "--silent", "--eval", "environment: ; @env", "environment"]
    seen = subprocess.run(target, cwd=ROOT, env=os.environ | others, capture_output=True, text=True, check=True)
    assert not {*others} & {line.partition("=")[0] for line in seen.stdout.splitlines()}


def test_the_last_part_of_ci_runs_what_a_new_machine_leaves_out():
    last = (ROOT / ".ci" / "run").read_text()
    optional = ("needs_browser", "needs_openssl", "object_gateway", "shutil.which(")
    modules = [
        path
        for path in (ROOT / "tests").glob("*/test_*.py")
        if path != Path(__file__) and any(word in path.read_text() for word in optional)
    ]
    assert len(modules) > 5
    assert [path.stem for path in modules if path.stem.removeprefix("test_") not in last] == []


PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def names(requirements):
    return {re.match(r"[\w-]+", each)[0].lower() for each in requirements}


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_known_by_the_modules_of_its_packages(extra):
    require(extra, "Tests")
    assert modules_of(extra).keys() == names(PROJECT["optional-dependencies"][extra])


def test_extras_are_no_part_of_a_small_core():
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert everything == f"evidence-toolkit[{','.join(EXTRAS)}]"
    assert {name for extra in EXTRAS for name in modules_of(extra)} & names(PROJECT["dependencies"]) == set()
    assert len(PROJECT["dependencies"]) <= 20


def without(modules, call):
    block = f"import sys; sys.modules.update(dict.fromkeys({[*modules]}))"
    return subprocess.run([sys.executable, "-c", f"{block}\n{call}"], capture_output=True, text=True)


BASE = ("clients load", "sales load", "sales complete", "credentials request", "db map", "up", "status")


def test_the_core_works_without_any_extra():
    extras = sorted({module for extra in EXTRAS for module in modules_of(extra).values()})
    commands = [[*each.split(), "--help"] for each in BASE]
    calls = (
        f"from toolkit.cli import main; print([main(each, {{}}) for each in {commands}]); import toolkit.partner"
    )
    done = without(extras, calls)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{[0] * len(commands)}\n")


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("embedded", "audit"),
        ("embedded", "up"),
        ("embedded", f"clients load {__file__}"),
        ("serve", "serve"),
        ("serve", "token issue --subject p"),
        ("audit", "audit"),
    ],
)
def test_who_lacks_an_extra_is_told_what_to_install(extra, command, tmp_path):
    call = f"main({command.split()}, {{'TOOLKIT_HOME': {str(tmp_path)!r}}})"
    done = without(modules_of(extra).values(), f"from toolkit.cli import main; sys.exit({call})")
    [line] = done.stderr.splitlines()
    assert (done.returncode, line.partition("lacks: ")[2]) == (1, f"pip install 'evidence-toolkit[{extra}]'")


def test_who_lacks_pdf_is_told_what_to_install(tmp_path, monkeypatch):
    for module in modules_of("pdf").values():
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotInstalled, match=re.escape("pip install 'evidence-toolkit[pdf]'")):
        FORMATS["pdf"](None, tmp_path / "report.pdf")
