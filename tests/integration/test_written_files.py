"""No file that a command writes can be read by other accounts of the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client_rows import client, write_csv
from tests.integration.evidence_bytes import pdf
from toolkit.entrypoints.cli import main


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(*folders: Path) -> dict[str, int]:
    return {
        str(path): stat.S_IMODE(path.stat().st_mode)
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


COMMANDS = {
    "clients load clients.csv --out {out}/rejected": 3,
    "sales load sales.csv --overwrite --out {out}/rejected": 3,
    "credentials request manifest.csv --out {out}/private/credentials.jsonl": 0,
    "evidence upload {out}/private/credentials.jsonl --from .": 0,
    "report --out {out}/report --format html,xlsx,csv,json": 0,
    "report --out {out}/private/whole --show-cpf --reason test": 0,
    "report --out {out}/partners --per-partner --format csv": 0,
    "evidence log --out {out}/private/custody.jsonl": 0,
    "snapshot export {out}/snapshots": 0,
    "db map --out {out}/map.toml": 0,
    "sample --out {out}/sample": 0,
    "notebooks copy {out}/notebooks": 0,
}
"""Commands that write files, and their exit statuses; notebooks have a test of their own."""


def test_what_commands_write_is_for_owner_and_group_and_what_names_people_for_its_owner(
    embedded_environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = embedded_environment
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    monkeypatch.chdir(given)
    write_csv(given / "clients.csv", [client(1), client(2, cpf="39053344706")])
    (given / "sales.csv").write_text(
        "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt\n"
        "V-1,,A,true,2026-03-02T12:00:00Z\nV-2,,A,perhaps,2026-03-02T12:00:00Z\n"
    )
    (given / "manifest.csv").write_text(
        "saleId,fileName,fileFormat,type,evidenceType\nV-1,Ana.pdf,application/pdf,application/pdf,KYC\n"
    )
    (given / "Ana.pdf").write_bytes(pdf())
    home = Path(environ["TOOLKIT_HOME"])
    before = modes(tmp_path, home).items()
    out.mkdir()
    (out / "private").mkdir()
    for command, status in COMMANDS.items():
        assert main(["-q", *command.format(out=out).split()], environ) == status, command
    written = modes(tmp_path, home).items() - before
    assert len(written) > 30
    assert [path for path, mode in written if mode & 0o037] == []
    told = ("private", "rejected", str(home / "custody-seals"), ".key")
    open_to_the_group = {path for path, mode in written if mode & 0o077 and any(each in path for each in told)}
    assert open_to_the_group == {str(out / "private" / "whole" / "index.html")}  # which names reports only
