"""Store the files of audits in a folder, or under a prefix of a bucket (``s3://bucket/prefix``)."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import ClientError

from toolkit.bucket.errors import Server, status_of
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.settings import AwsSettings, Settings, expanded

DEFAULT_TYPE: Final = "application/octet-stream"
_BLOCK: Final = 1 << 20


def open_store(target: str, settings: Settings) -> FileStore:
    """Return the folder, or the prefix of a bucket, that ``target`` names.

    Raises:
        InvalidInput: ``target`` is no folder and no ``s3://`` address.
    """
    if "://" not in target:
        return FolderStore(expanded(target).absolute(), target)
    found = re.fullmatch(r"s3://(?P<bucket>[a-z0-9.-]+)(/(?P<prefix>.*))?", target)
    if found is None:
        raise InvalidInput("A target is a folder, or an address such as s3://bucket/prefix.")
    from toolkit.bucket.client import access_settings

    return S3Store(found["bucket"], (found["prefix"] or "").strip("/"), access_settings(settings), target)


class FolderStore:
    """Files below a folder, by names that may hold slashes; ``address`` is the folder as a person wrote it.

    ``place`` names it from any working directory.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self.address, self.place = address, str(folder)
        self._folder = folder

    def names(self) -> list[str]:
        """Return the names of all files, in order; drafts are hidden, and may vanish while this looks."""
        found = []
        for folder, below, files in os.walk(self._folder):
            below[:] = [name for name in below if not name.startswith(".")]
            found += [Path(folder, name) for name in files if not name.startswith(".")]
        return sorted(path.relative_to(self._folder).as_posix() for path in found)

    def text(self, name: str) -> str:
        """Return a small file as text."""
        text: str = self._read(lambda path: path.read_text(encoding="utf-8"), name)
        return text

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        (self._folder / name).write_bytes(content)

    def local(self, name: str, cache: Path, version: str = "") -> Path:  # noqa: ARG002
        """Return the file itself; another store copies it into ``cache``."""
        place: Path = self._read(lambda path: path.resolve(strict=True), name)
        return place

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of the file as it is there now."""
        with self.local(name, self._folder).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()

    def take(self, draft: Path, owner: str) -> bool:  # noqa: ARG002
        """Move the folder of a draft here; tells whether its name was free."""
        try:
            draft.rename(self._folder / draft.name)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            return False
        return True

    def remove(self, name: str) -> None:
        """Remove the file, and its folder where it was the last one in it."""
        place = self._folder / name
        place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == self._folder or any(folder.iterdir()):
                break
            folder.rmdir()

    def _read(self, read: Callable[[Path], Any], name: str) -> Any:
        try:
            return read(self._folder / name)
        except FileNotFoundError:
            raise UnreadableFile("{}: no such file.", self._folder / name) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableFile("{} cannot be read: {}.", self._folder / name, error) from None


class S3Store:
    """Objects below a prefix of a bucket, otherwise as the files of a ``FolderStore``."""

    def __init__(self, bucket: str, prefix: str, aws: AwsSettings, address: str) -> None:
        from toolkit.bucket.sessions import Access  # boto3 takes 8 MB, which a folder need not

        self.address = self.place = address
        self._bucket, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._server = Server(f"bucket {bucket}", aws.embedded, named_by=address)
        with self._server.translated():
            self._client = Access(aws).client("s3")

    def names(self) -> list[str]:
        """Return the names of all objects, in order."""
        with self._server.translated():
            listing = self._client.get_paginator("list_objects_v2")
            pages = listing.paginate(Bucket=self._bucket, Prefix=self._prefix)
            keys = (item["Key"] for page in pages for item in page.get("Contents", ()))
            return sorted(key.removeprefix(self._prefix) for key in keys)

    def text(self, name: str) -> str:
        """Return a small object as text."""
        with self._server.translated(), self._missing_refused(name):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            return str(answer["Body"].read().decode())

    def put(self, name: str, draft: Path, *, media_type: str = DEFAULT_TYPE) -> None:
        """Upload the draft, to be handed out as a media type, and remove it."""
        with self._server.translated(), draft.open("rb") as file:
            key, extra = self._prefix + name, {"ContentType": media_type}
            self._client.upload_fileobj(file, self._bucket, key, ExtraArgs=extra)  # in parts beyond 5 GB, too
        draft.unlink()

    def write(self, name: str, content: bytes) -> None:
        """Write a small object."""
        with self._server.translated():
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def take(self, draft: Path, owner: str) -> bool:
        """Tell whether ``owner`` alone may write under the name of a draft, who was the first to ask for it."""
        with self._server.translated():
            try:
                place = {"Bucket": self._bucket, "Key": f"{self._prefix}{draft.name}/claim"}
                self._client.put_object(**place, Body=owner.encode(), IfNoneMatch="*")
            except ClientError as error:
                if status_of(error) not in (409, 412, 501):
                    raise
                if status_of(error) != 501:
                    return self.text(f"{draft.name}/claim") == owner
        return True  # 501: a server that writes nothing on a condition leaves two of the same second to chance

    def local(self, name: str, cache: Path, version: str = "") -> Path:
        """Return a copy in ``cache``, fetched once for each ``version``, such as its SHA-256."""
        digest = sha256(f"{self.address}\0{name}\0{version}".encode()).hexdigest()
        place = cache / digest[:2] / digest
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = place.with_name(f".{place.name}")
            with self._server.translated(), self._missing_refused(name):
                self._client.download_file(self._bucket, self._prefix + name, str(draft))
            draft.rename(place)
        return place

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of the object as it is there now, whatever copy was kept."""
        digest = sha256()
        with self._server.translated(), self._missing_refused(name):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            for block in answer["Body"].iter_chunks(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def remove(self, name: str) -> None:
        """Delete the object."""
        with self._server.translated():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    @contextmanager
    def _missing_refused(self, name: str) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            if status_of(error) == 404:
                raise UnreadableFile("{}: no such file.", f"{self.address.rstrip('/')}/{name}") from None
            raise


FileStore = FolderStore | S3Store
