"""Call the two endpoints of the contract, and those that tell a partner what its sales lack."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from ssl import SSLCertVerificationError
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, MaxRetryError
from urllib3.util import Url, parse_url

from toolkit.contract.resources import RegisteredClient, UploadCredentials
from toolkit.errors import (
    AlreadyThere,
    FindingNotFound,
    InvalidField,
    InvalidFields,
    SaleNotFound,
    ServiceError,
    ServiceUnavailable,
    SettingsError,
    UnreadableFile,
)
from toolkit.partner.posting import ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE, NOT_TRUSTED, post_file

R = TypeVar("R")

TIMEOUT: Final = urllib3.Timeout(connect=10, read=30)

NOT_ACKNOWLEDGED: Final = frozenset((429, 503))

RETRIES: Final = urllib3.Retry(
    ATTEMPTS - 1,
    read=0,
    other=0,
    redirect=0,
    allowed_methods=None,
    status_forcelist=NOT_ACKNOWLEDGED,
    raise_on_status=False,
    raise_on_redirect=False,
    backoff_factor=FIRST_PAUSE / 2,
    backoff_jitter=FIRST_PAUSE,
    backoff_max=LONGEST_PAUSE,
    retry_after_max=int(LONGEST_PAUSE),
)
"""Only a request that never left or was not acknowledged is sent again: see ``PartnerClient``."""


class PartnerClient:
    """A partner's access to the service at ``base_url`` with a bearer token; safe to share between threads.

    What was not acknowledged (no connection, 429 or 503) is tried again, not before the service asks for it. A
    request that broke off after it was sent is not: it may have been done, and both endpoints make a new record
    each time. Every call may raise ``ServiceUnavailable`` (there is no answer) and ``ServiceError`` (another one).
    """

    def __init__(self, base_url: str, token: str) -> None:
        try:
            address = parse_url(base_url)
        except LocationParseError:
            address = Url()
        if address.scheme not in {"http", "https"} or not address.host:
            raise SettingsError("The address of the service must look like https://sales.example.com")
        self.base_url = base_url.rstrip("/")
        self._token = token.strip()  # read from a file, it ends with a line break
        self._pool = urllib3.PoolManager(maxsize=16)

    def register_client(self, client: Mapping[str, Any]) -> RegisteredClient:
        """Register a client with its address (contract names; dates may be dates), anew each time.

        Raises:
            InvalidFields: every invalid field, as the service names them.
        """
        return self._call("POST", "/clients", RegisteredClient.model_validate, client)

    def request_upload(self, sale_id: str, request: Mapping[str, Any]) -> UploadCredentials:
        """Ask for credentials for one file: ``fileName``, ``fileFormat``, ``type``, ``evidenceType``.

        Raises:
            InvalidFields: every invalid field, as the service names them.
            SaleNotFound: the service knows no such sale.
        """
        path = f"/sales/{_segment(sale_id)}/evidences"
        return self._call("PUT", path, UploadCredentials.model_validate, request)

    def upload(self, sale_id: str, path: Path, *, evidence_type: str, media_type: str) -> UUID:
        """Ask for credentials for ``path`` and send it; return the id of its evidence record.

        Raises: as ``request_upload`` and ``post_file``; a file that cannot be read is not asked for.
        """
        try:
            path.open("rb").close()
        except OSError as error:
            raise UnreadableFile("The file cannot be read: {}.", error.strerror or "unknown reason") from None
        request = {
            "fileName": path.name,
            "fileFormat": media_type,
            "type": media_type,
            "evidenceType": evidence_type,
        }
        credentials = self.request_upload(sale_id, request)
        post_file(credentials.url, credentials.fields, path, pool=self._pool)
        return credentials.id

    def evidences(self, sale_id: str) -> Mapping[str, Any]:
        """Return each evidence type of a sale with its state, as ``GET /sales/{saleId}/evidences`` answers.

        Raises:
            SaleNotFound: the service knows no such sale.
        """
        return self._of_sale(sale_id, "evidences")

    def completion(self, sale_id: str) -> Mapping[str, Any]:
        """Return whether a sale may be completed, and what it lacks; raises as ``evidences`` does."""
        return self._of_sale(sale_id, "completion")

    def _of_sale(self, sale_id: str, what: str) -> Mapping[str, Any]:
        path = f"/sales/{_segment(sale_id)}/{what}"
        return self._call("GET", path, lambda answer: {"saleId": answer["saleId"], **answer})

    def findings(self, *, status: str = "open", due_before: date | str = "") -> Iterator[Mapping[str, Any]]:
        """Yield the findings about the partner's own sales, page by page, in the order of their ids.

        Raises:
            InvalidFields: there is no such status, or the day is none.
        """
        asked = {"status": status} | ({"dueBefore": due_before} if due_before else {})
        after: str | None = ""
        while after is not None:
            path = f"/findings?{urlencode(asked | ({'after': after} if after else {}))}"
            found, after = self._call("GET", path, lambda page: (list(page["findings"]), page["nextAfter"]))
            yield from found

    def answer(
        self, finding_id: UUID | str, answer: str, *, until: date | str | None = None, text: str | None = None
    ) -> UUID:
        """Answer a finding: ``sentAgain``, ``willCome``, ``disputed`` or ``waiverAsked``; return the answer's id.

        Raises:
            InvalidFields: every invalid field, as the service names them.
            FindingNotFound: it is no finding of the partner.
        """
        body = {"answer": answer, "until": until, "text": text}
        path = f"/findings/{_segment(str(finding_id))}/answers"
        try:
            return self._call("POST", path, lambda kept: UUID(kept["id"]), body)
        except SaleNotFound:
            raise FindingNotFound from None

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._pool.clear()

    def _call(
        self, method: str, path: str, read: Callable[[Mapping[str, Any]], R], body: Mapping[str, Any] | None = None
    ) -> R:
        """Send a request, and return what is read from its answer."""
        sent = None if body is None else json.dumps(body, ensure_ascii=False, default=date.isoformat).encode()
        try:
            response = self._pool.request(
                method,
                self.base_url + path,
                body=sent,
                headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
                timeout=TIMEOUT,
                retries=RETRIES,
                redirect=False,
            )
        except HTTPError as error:
            reason = error.reason if isinstance(error, MaxRetryError) else None
            if isinstance(reason, ConnectTimeoutError):
                raise self._away() from None
            if reason is not None and isinstance(next(iter(reason.args), None), SSLCertVerificationError):
                raise ServiceError(NOT_TRUSTED, self.base_url) from None
            raise ServiceUnavailable(
                "The connection to {} broke after the request was sent: it may have been done.", self.base_url
            ) from None
        if response.status in NOT_ACKNOWLEDGED:
            raise self._away()
        answer = self._checked(path, response)
        try:
            return read(answer)
        except (KeyError, ValueError, TypeError, AttributeError):
            raise ServiceError("The answer of the service at {} is not the contract's.", self.base_url) from None

    def _away(self) -> ServiceUnavailable:
        return ServiceUnavailable("The service at {} does not answer; try again later.", self.base_url)

    def _checked(self, path: str, response: urllib3.BaseHTTPResponse) -> Mapping[str, Any]:
        try:
            answer = json.loads(response.data)
        except ValueError:
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        if response.status == 200:
            return answer
        if response.status == 400:
            invalid = answer.get("invalidFieldsErrors")
            if isinstance(invalid, list) and invalid:
                raise InvalidFields([_invalid_field(item) for item in invalid])
        if response.status == 401:
            raise ServiceError("The service at {} did not accept the bearer token.", self.base_url)
        if response.status == 404 and path.startswith(("/sales/", "/findings/")):
            raise SaleNotFound
        if response.status == 409:
            raise AlreadyThere(str(answer.get("message") or "") or None)
        raise ServiceError(
            "The service at {} answered {}, which was not expected.", self.base_url, response.status
        )


def _segment(sale_id: str) -> str:
    """Return the sale id as one segment of a path; dots alone would be taken for a step up or down."""
    return quote(sale_id, safe="") if sale_id.strip(".") else "%2E" * len(sale_id)


def _invalid_field(item: Any) -> InvalidField:
    named = item if isinstance(item, dict) else {}
    return InvalidField(str(named.get("field", "")), str(named.get("message", "")))
