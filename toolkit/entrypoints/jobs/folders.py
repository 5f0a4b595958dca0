"""Keep the files of runs: staged while a run goes on, published when it is done, apart when it failed.

::

    OUT/JOB/2026-11-21T0200-0300/STEP/...      a run that is done, and nothing else
    OUT/JOB/latest                             a link to the newest of them
    OUT/JOB/failed/2026-11-21T0200-0300/       reason.json, and the notebook of the step that failed
    OUT/JOB/.staged/2026-11-21T0200-0300/      what a run has made so far, one folder for each start

A start stages in a folder of its own, so that one that was taken for dead cannot reach what its successor makes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID
from zoneinfo import ZoneInfo

from toolkit.errors import JobFailed
from toolkit.operations.private_folder import sync

Files = Sequence[Mapping[str, Any]]
"""Names relative to the folder of the run, with sizes and SHA-256."""


@dataclass(frozen=True)
class JobFolder:
    """The folder of one job."""

    out: Path
    job: str
    zone: ZoneInfo

    @property
    def path(self) -> Path:
        """The folder of the job."""
        return self.out / self.job

    def name(self, slot: datetime) -> str:
        """Return the name of a slot's folder: its time in the zone of the office."""
        return slot.astimezone(self.zone).strftime("%Y-%m-%dT%H%M%z")

    def final(self, slot: datetime) -> Path:
        """Return the folder for the files of a run that is done."""
        return self.path / self.name(slot)

    def failed(self, slot: datetime) -> Path:
        """Return the folder that says why a run failed."""
        return self.path / "failed" / self.name(slot)

    def staged(self, slot: datetime) -> Path:
        """Return the folder in which each start of a run has a folder for unfinished files."""
        return self.path / ".staged" / self.name(slot)

    def begin(self, slot: datetime, holder: UUID, done: Mapping[str, Files]) -> Staging:
        """Return a folder for a start, with the files of the steps that earlier starts did."""
        staging = Staging(self.staged(slot) / str(holder), self.final(slot))
        staging.path.mkdir(parents=True)
        for earlier in sorted(self.staged(slot).iterdir()):
            if earlier == staging.path:
                continue
            for step, files in done.items():
                if files and (earlier / step).is_dir() and holds_all(earlier, files):
                    (earlier / step).rename(staging.path / step)
            shutil.rmtree(earlier, ignore_errors=True)
        return staging

    def publish(self, slot: datetime, files: Files) -> None:
        """Give the staged files of a run their final names; again where that was begun before.

        Raises:
            JobFailed: they are not on this machine.
        """
        final = self.final(slot)
        if files and not holds_all(final, files):
            staged = next((each for each in _folders(self.staged(slot)) if holds_all(each, files)), None)
            if staged is None:
                raise JobFailed(f"The files of the run are not below {self.path}: another machine has them.")
            if final.exists():  # of a history that is not this database's
                final.rename(_free_name(final))
            staged.rename(final)
            sync(self.path)
            self._link(final)
        shutil.rmtree(self.staged(slot), ignore_errors=True)

    def _link(self, final: Path) -> None:
        latest, draft = self.path / "latest", self.path / f".latest.{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(final.name)
        draft.replace(latest)

    def keep_failure(self, slot: datetime, reason: Mapping[str, Any], notebooks: Iterable[Path]) -> Path:
        """Keep the reason of a failure, and the notebook of the step that failed."""
        folder = self.failed(slot)
        folder.mkdir(parents=True, exist_ok=True)
        for notebook in notebooks:
            notebook.replace(folder / notebook.name)
        (folder / "reason.json").write_text(json.dumps(reason, indent=2) + "\n", encoding="utf-8")
        return folder

    def delete(self, slot: datetime) -> None:
        """Delete every file of a slot."""
        for folder in (self.final(slot), self.failed(slot), self.staged(slot)):
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self, slot: datetime, holder: UUID | None) -> None:
        """Delete the staged files of a start that lost its run to another one."""
        shutil.rmtree(self.staged(slot) / str(holder), ignore_errors=True)
        with suppress(OSError):  # the other one stages there, or nobody did
            self.staged(slot).rmdir()

    def tidy(self, keep: Iterable[datetime]) -> None:
        """Delete staged files of abandoned slots, and links without a target."""
        wanted = {self.name(slot) for slot in keep}
        for folder in _folders(self.path / ".staged"):
            if folder.name not in wanted:
                shutil.rmtree(folder, ignore_errors=True)
        latest = self.path / "latest"
        if latest.is_symlink() and not latest.exists():
            latest.unlink(missing_ok=True)


@dataclass(frozen=True)
class Staging:
    """The folder of one start of a run, and the final folder of the run."""

    path: Path
    final: Path

    def begin(self, step: str) -> Path:
        """Return an empty folder for a step to write into."""
        part = self.path / f".{step}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        return part

    def end(self, step: str) -> list[dict[str, Any]]:
        """Keep the files that a step wrote, and list them."""
        part, kept = self.path / f".{step}", self.path / step
        for notebook in part.glob("*.ipynb"):
            _name_finally(notebook, part.relative_to(self.path.parents[2]), Path(self.final.name) / step)
        shutil.rmtree(kept, ignore_errors=True)
        part.rename(kept)
        files = listed(kept, self.path)
        if not files:
            shutil.rmtree(kept)
        return files


def listed(folder: Path, base: Path) -> list[dict[str, Any]]:
    """Return the files below ``folder`` by their names relative to ``base``, brought to the disk."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            found.append({"name": path.relative_to(base).as_posix(), "bytes": size, "sha256": digest})
    return found


def holds_all(folder: Path, files: Files) -> bool:
    """Tell whether the folder holds each of these files as it was listed."""
    for file in files:
        path = folder / str(file["name"])
        if not path.is_file() or path.stat().st_size != file["bytes"]:
            return False
        with path.open("rb") as opened:
            if file_digest(opened, "sha256").hexdigest() != file["sha256"]:
                return False
    return True


def _name_finally(notebook: Path, part: Path, final: Path) -> None:
    """Replace the staged paths in an executed notebook by the final ones."""
    text = changed = notebook.read_text(encoding="utf-8")
    for written in (str, quote):  # as a path, and in a link
        changed = changed.replace(written(str(part)), written(str(final)))
    if changed != text:
        notebook.write_text(changed, encoding="utf-8")


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


def _free_name(path: Path) -> Path:
    number = 1
    while (free := path.with_name(f"{path.name}.earlier-{number}")).exists():
        number += 1
    return free
