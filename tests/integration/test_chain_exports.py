"""Exports of the chain of hashes that the custody log was before version 0.2: they are verified as ever."""

import json
from pathlib import Path
from shutil import copy

import pytest

from toolkit.log.chain import verify_log

OLD = Path(__file__).parents[1] / "data" / "log" / "chain.jsonl"
NEWEST = "55652cf0fbd53adba60d5fd8dac7fca2cf65c2d83e06d445d3bf80ee528c77dd"


@pytest.fixture
def exported(tmp_path):
    """A log of seven events under three seals."""
    return Path(copy(OLD, tmp_path))


def edited(path, change):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: lines[5]["event"]["detail"].update(number=99), "line 6: event 5 (TOLD) was changed"),
        (lambda lines: lines[0]["event"].update(at="2025"), "line 1: event 1 (TOLD) was changed"),
        (lambda lines: lines.pop(4), "line 5: event 5 (TOLD) was changed, put in or moved, or follows a gap"),
        (lambda lines: lines.insert(1, lines[2]), "line 2: event 3 (TOLD)"),
        (lambda lines: lines.pop(2), "line 3: seal 1 does not fit"),
        (lambda lines: lines.pop(3), "line 4: event 4"),
        (lambda lines: lines.pop(), "the end is missing: 1 events have no seal"),
        (lambda lines: lines[3]["seal"].update(sealedAt="2025"), "line 4: seal 1 does not fit"),
        (lambda lines: lines.insert(0, {"note": "x"}), "line 1: no event and no seal"),
    ],
)
def test_the_first_line_that_does_not_fit_is_named(exported, change, reason):
    misfit = verify_log(edited(exported, change)).misfit
    assert misfit.startswith(reason)


@pytest.mark.parametrize(
    ("told", "forged"),
    [
        ('{"event": {', '{"event": {"kind": "WITHDRAWN", '),
        ('"digest"', '"note": "nobody hashed this", "digest"'),
        ('"digest"', '"seal": {}, "digest"'),
        ('{"event": {', "[" * 100_000),
    ],
)
def test_a_line_says_nothing_beside_what_is_hashed(exported, told, forged):
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join([lines[0], lines[1].replace(told, forged), *lines[2:]]))
    assert verify_log(exported).misfit == "line 2: no event and no seal"


def test_an_old_export_is_verified_by_a_seal_that_was_kept(run, exported):
    verdict = verify_log(exported, kept_seal=NEWEST)
    assert (verdict.events, verdict.seals, verdict.newest, verdict.misfit) == (7, 3, NEWEST, None)
    assert "7 events under 3 seals" in run("verify", exported, "--seal", NEWEST, within={}).out
    run("verify", exported.parent, "--seal", NEWEST, ends=2, within={})
    # Without a kept one nobody knows whether it was cut off at a seal, or forged as a whole.
    assert "not known" in run("verify", exported, ends=3, within={}).out
    assert "forged as a whole, or cut off" in str(verify_log(exported, "0" * 64).misfit)
    lines = exported.read_text().splitlines(keepends=True)
    exported.write_text("".join(lines[:4]))
    run("verify", exported, "--seal", NEWEST, ends=3, within={})
    exported.write_bytes(b"\xff\xfe")
    run("verify", exported, ends=1, within={})
