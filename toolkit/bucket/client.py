"""The bucket: upload forms, listings and ranged reads, through boto3.

A page of a listing waits for the network most of the time, and the next one cannot be asked for before it is
there. So a part that has more than one page is listed folder by folder, and the folders at the same time.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, TypeVar

from botocore.exceptions import ClientError

from toolkit import embedded as embedded_services
from toolkit.bucket.errors import Server, shown_address, status_of
from toolkit.bucket.sessions import Access, SigningSessions, signed_fields
from toolkit.contract.deadlines import Clock, wall_clock
from toolkit.errors import BucketError, BucketUnavailable, ObjectArchived
from toolkit.settings import AwsSettings, Settings

_CHUNK: Final = 256 * 1024
PAGE: Final = 1000  # keys in a page of a listing: the most that S3 gives

ASKERS: Final = 16  # keys that are asked for, or pages that are read, at the same time
ASKED_AT_ONCE: Final = 1000  # keys whose answers are held at a time

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """An object as the bucket shows it; ``size`` in bytes, ``etag`` without quotes.

    ``version_id`` is known where it was asked for by its key in a bucket that keeps versions.
    """

    key: str
    size: int
    etag: str
    last_modified: datetime
    version_id: str | None = None


class Page(NamedTuple):
    """A page of a listing; ``token`` asks for the next one, if there is one."""

    objects: list[ObjectSeen]
    token: str | None = None
    folders: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Area:
    """The part of a bucket that listings show: keys under any of ``prefixes`` (none: all), not ``ignored``."""

    prefixes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def shows(self, key: str) -> bool:
        """Tell whether a listing shows the key."""
        return (not self.prefixes or key.startswith(self.prefixes)) and not key.startswith(self.ignored)

    def within(self, prefix: str) -> list[str]:
        """Return the prefixes to list for the keys with ``prefix``."""
        wanted = self.prefixes or ("",)
        nested = (each for each in wanted if each.startswith(prefix) or prefix.startswith(each))
        return sorted({max(each, prefix, key=len) for each in nested})


@dataclass(frozen=True, slots=True)
class UploadForm:
    """A form that posts one file; whoever holds ``fields`` may upload, so they are never shown."""

    url: str
    fields: dict[str, str] = field(repr=False)
    expires_at: datetime


class Bucket:
    """An S3 bucket; cheap to keep for a whole process, safe to share between threads.

    ``embedded`` tells whether it is the one that the toolkit started itself; ``endpoint`` says to people where
    it is. Every method may raise ``BucketUnavailable`` (trying again later may help) and ``BucketError``.
    """

    def __init__(
        self, name: str, aws: AwsSettings, *, area: Area | None = None, clock: Clock = wall_clock
    ) -> None:
        self._clock = clock
        self.name = name
        self.area = area or Area()
        self.embedded = embedded = aws.embedded
        with Server(f"bucket {name}", embedded).translated():
            access = Access(aws)
            self._client = access.client("s3")
        self.endpoint = "embedded bucket" if embedded else shown_address(str(self._client.meta.endpoint_url))
        self._server = Server(self.endpoint if embedded else f"bucket {self.name} at {self.endpoint}", embedded)
        self._sessions = SigningSessions(access, self._server, clock)

    @classmethod
    def open(cls, settings: Settings, clock: Clock = wall_clock) -> Self:
        """Return the shared bucket where ``EVIDENCE_BUCKET`` names one, else the embedded one, started if need be.

        Raises:
            EmbeddedServiceError: the embedded one cannot be started.
        """
        name = settings.evidence_bucket or embedded_services.BUCKET
        area = Area(settings.evidence_prefixes, settings.ignored_prefixes)
        return cls(name, access_settings(settings), area=area, clock=clock)

    @property
    def address(self) -> str:
        """The bucket as it is told apart from others of the same name."""
        return f"{self.name} ({self.endpoint})"

    def presign_post(self, key: str, *, max_bytes: int, expires_at: datetime) -> UploadForm:
        """Return a form that uploads one file of 1 to ``max_bytes`` bytes to ``key``, and nothing else.

        The caller posts the fields, then ``acl=private``, then ``file`` (contract, section 3). A form lives to
        the whole second, and never longer than the temporary session that signs it: its ``expires_at`` may be
        earlier than asked for.
        """
        session = self._sessions.session(expires_at)
        expires_at = min(expires_at, session.ends_at or expires_at).replace(microsecond=0)
        fields = signed_fields(
            session.credentials,
            self._client.meta.region_name,
            bucket=self.name,
            key=key,
            max_bytes=max_bytes,
            signed_at=self._clock(),
            expires_at=expires_at,
        )
        return UploadForm(self.form_url, fields, expires_at)

    def presign_get(self, key: str, seconds: int) -> str:
        """Return an address under which anybody reads the object for that long, as a download."""
        asked = {"Bucket": self.name, "Key": key, "ResponseContentDisposition": "attachment"}
        with self._server.translated():
            return str(self._client.generate_presigned_url("get_object", Params=asked, ExpiresIn=seconds))

    def page(self, prefix: str, token: str = "", *, level: bool = False) -> Page:
        """Return the first page of the keys with a prefix, or that of ``token``, as far as the area shows them.

        With ``level`` it holds the objects right below the prefix, and the folders there.
        """
        asked: dict[str, Any] = {"Bucket": self.name, "Prefix": prefix, "MaxKeys": PAGE}
        asked |= {"ContinuationToken": token} if token else {}
        with self._server.translated():
            answer = self._client.list_objects_v2(**asked, **({"Delimiter": "/"} if level else {}))
            following = answer["NextContinuationToken"] if answer["IsTruncated"] else None
            if following == token:
                raise KeyError(token)  # a server that does not know it would be asked for the same page for ever
            objects = [
                ObjectSeen(item["Key"], item["Size"], item["ETag"].strip('"'), item["LastModified"])
                for item in answer.get("Contents", ())
                if self.area.shows(item["Key"])
            ]
        folders = [each["Prefix"] for each in answer.get("CommonPrefixes", ())]
        return Page(objects, following, folders)

    def head(self, key: str) -> ObjectSeen | None:
        """Return the object under ``key`` as it is now, ``None`` where there is none."""
        if not key:  # a service may keep a record without one
            return None
        with self._server.translated():
            try:
                item = self._client.head_object(Bucket=self.name, Key=key)
                etag, version = item["ETag"].strip('"'), item.get("VersionId")
            except ClientError as error:
                if status_of(error) == 404:
                    return None
                raise
        return ObjectSeen(key, item["ContentLength"], etag, item["LastModified"], version)

    def keeps_versions(self) -> bool:
        """Tell whether the bucket keeps the versions of its objects, or may do so."""
        try:
            with self._server.translated():
                return "Status" in self._client.get_bucket_versioning(Bucket=self.name)
        except BucketUnavailable:
            raise
        except BucketError:
            return True  # the answer to each object tells

    def read(self, key: str, length: int) -> bytes:
        """Return the first ``length`` bytes of the object, fewer where it ends before.

        Raises:
            BucketError: there is no such object, or the bucket answers but for this one.
        """
        with self._one_object():
            try:
                answer = self._client.get_object(Bucket=self.name, Key=key, Range=f"bytes=0-{length - 1}")
            except ClientError as error:
                if status_of(error) == 416:
                    return b""
                raise
            return bytes(answer["Body"].read())

    @contextmanager
    def download(self, key: str, *, etag: str) -> Iterator[tuple[Iterator[bytes], str | None]]:
        """Open the object for its bytes and the media type that it is stored with.

        Raises:
            BucketError: there is no such object, it is not the version any more that was listed with ``etag``, or
                the bucket answers but for this one.
        """
        with self._one_object():
            answer = self._client.get_object(Bucket=self.name, Key=key, IfMatch=f'"{etag}"')
            with closing(answer["Body"]) as body:
                if answer["ETag"].strip('"') != etag:
                    raise BucketError("The object was overwritten since it was listed.")
                yield body.iter_chunks(_CHUNK), answer.get("ContentType")

    @contextmanager
    def _one_object(self) -> Iterator[None]:
        """Translate errors; of a bucket that lost an object, such as with a disk, only that one is away."""
        try:
            with self._server.translated():
                yield
        except BucketUnavailable as error:
            try:
                self.check()
            except BucketError:
                raise error from None
            raise BucketError(error.message) from None

    def erase(self, key: str) -> None:
        """Remove an object in every version, with its markers and unfinished uploads.

        Raises:
            BucketError: a version is locked, or the account may not delete versions.
        """
        asked = {"Bucket": self.name, "Prefix": key}
        with self._server.translated():
            found = [
                item["VersionId"]
                for page in self._client.get_paginator("list_object_versions").paginate(**asked)
                for item in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
                if item["Key"] == key
            ]
            for version in found:
                try:
                    self._client.delete_object(Bucket=self.name, Key=key, VersionId=version)
                except ClientError as error:
                    if status_of(error) == 403:
                        raise BucketError(
                            "A version is locked, or s3:DeleteObjectVersion is not granted."
                        ) from error
                    raise
            for page in self._client.get_paginator("list_multipart_uploads").paginate(**asked):
                for item in page.get("Uploads", ()):
                    if item["Key"] == key:
                        self._client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=item["UploadId"])

    def check(self) -> None:
        """Make sure that the bucket is there and answers."""
        with self._server.translated():
            self._client.head_bucket(Bucket=self.name)

    def check_reading(self) -> None:
        """Make sure that objects may be listed, and read where there is one.

        Raises:
            BucketError: naming the right that is missing, ``s3:ListBucket`` or ``s3:GetObject``.
        """
        with self._server.translated():
            prefix = (self.area.prefixes or ("",))[0]
            found = self._client.list_objects_v2(Bucket=self.name, Prefix=prefix, MaxKeys=1).get("Contents", ())
        for item in found:
            with suppress(ObjectArchived):
                self.read(item["Key"], 1)

    @cached_property
    def form_url(self) -> str:
        """Return the address for forms, with the bucket in the host or in the path, as boto3 decides."""
        with self._server.translated():
            return str(self._client.generate_presigned_post(self.name, "any")["url"])


_Part = tuple[str, str]
"""The next page of a listing: a prefix, and the token of the page, empty for the first one."""


def list_objects(bucket: Bucket, prefixes: Iterable[str]) -> Generator[list[ObjectSeen]]:
    """Yield every object of the bucket's area with one of the prefixes, in pages, in no particular order.

    Memory holds a page for each thread. An object that several prefixes have comes several times.
    """
    waiting = [(each, "") for prefix in prefixes for each in bucket.area.within(prefix)]
    turns = set[Future[tuple[list[ObjectSeen], list[_Part]]]]()
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="listing") as threads:
        while waiting or turns:
            while waiting and len(turns) < ASKERS:
                turns.add(threads.submit(_read, bucket, *waiting.pop()))
            done, turns = wait(turns, return_when=FIRST_COMPLETED)
            for each in done:
                objects, following = each.result()
                waiting += following
                yield objects


def _read(bucket: Bucket, prefix: str, token: str) -> tuple[list[ObjectSeen], list[_Part]]:
    """Return the page and the parts that follow it."""
    page = bucket.page(prefix, token)
    if page.token is None:
        return page.objects, []
    if not token:
        # A token cannot be given for a folder, so the keys of this page may come again.
        level = bucket.page(prefix, level=True)
        if level.token is None and level.folders:
            return level.objects, [(folder, "") for folder in level.folders]
    return page.objects, [(prefix, page.token)]


def ask_each(look: Callable[[K], V], batches: Iterable[Sequence[K]]) -> Iterator[list[V]]:
    """Yield the answers to each batch, in its order; some of them are asked for at the same time."""
    with ThreadPoolExecutor(ASKERS, thread_name_prefix="asking") as threads:
        for batch in batches:
            yield list(threads.map(look, batch))


def form_address(name: str, aws: AwsSettings) -> str:
    """Return the address that upload forms of a bucket have, whoever signs them."""
    somebody = replace(aws, access_key_id="any", secret_access_key="any", session_token=None)  # noqa: S106  # signs nothing
    return Bucket(name, somebody).form_url


def access_settings(settings: Settings) -> AwsSettings:
    """Return the access to the S3 server of the settings: a shared one, or the embedded one, which is started."""
    return settings.aws if settings.evidence_bucket else embedded_services.bucket_access(settings.home)
