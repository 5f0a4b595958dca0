"""Read a request body, bounded in size and time, as strictly one JSON object.

JSON has corners in which two readers understand two things (a repeated key, ``NaN``); a body that uses one
is refused instead of guessed at.
"""

import asyncio
import json
from typing import Any, Final, NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import Request

from toolkit.contract.fields import REQUIRED
from toolkit.errors import InvalidField, InvalidFields

BODY_MAX: Final = 64 * 1024
"""Bytes in a body."""

BODY_SECONDS: Final = 20
"""Time for a body to arrive whole."""

BODY: Final = "body"
CONTENT_TYPE: Final = "Content-Type"


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that the request carries.

    Raises:
        InvalidFields: the content type is another, the body is packed or not one JSON object; the one entry
            is named after the header, or ``body``.
        HTTPException: 413, the body is too large, noticed without reading on; 408, it arrives too slowly.
    """
    _check_content_type(request.headers.get("content-type"))
    for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        if request.headers.get(name, plain).strip().lower() != plain:
            _refuse(f"Must be {plain}", name)
    # The parser refuses what is no number or over 2**64, and lets any number of zeros stand before it.
    if int(request.headers.get("content-length", "").lstrip("0") or 0) > BODY_MAX:
        raise HTTPException(413)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return _parse(await _read(request))
    except TimeoutError:
        raise HTTPException(408) from None


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise HTTPException(413)
    return bytes(body)


def _check_content_type(header: str | None) -> None:
    if header is None:
        _refuse(REQUIRED, CONTENT_TYPE)
    media_type, _, parameters = header.lower().partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip(' "')
    if media_type.strip() != "application/json" or charset not in {"", "utf-8", "utf8"}:
        _refuse("Must be application/json, in UTF-8", CONTENT_TYPE)


def _parse(body: bytes) -> dict[str, Any]:
    if not body.strip():
        _refuse(REQUIRED)
    try:
        # No field of the contract is a number: as floats, integers of any length cost nothing.
        value = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_constant, parse_int=float
        )
    except UnicodeDecodeError:
        _refuse("Must be UTF-8")
    except RecursionError:
        _refuse("Must not be nested so deeply")
    except ValueError:
        _refuse("Must be valid JSON")
    if not isinstance(value, dict):
        _refuse("Must be an object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        _refuse("Must not repeat a field")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse(reason: str, field: str = BODY) -> NoReturn:
    raise InvalidFields([InvalidField(field, reason)])
