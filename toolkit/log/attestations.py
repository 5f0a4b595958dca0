"""What others say of a state of the log: witnesses sign it, and an authority stamps it.

A witness signs after it saw that the state goes on from the one it signed before. It is asked by what C2SP
``tlog-witness`` sends to ``add-checkpoint``, in a file or over HTTP, and answers with ``tlog-cosignature`` lines.
An operator's own witness makes a second history detectable, and prevents none. An authority's answer (RFC 3161) is
kept as it came; the custody log has its hash, so that a later one, over a later state, renews it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from toolkit.contract.events import CustodyEvent
from toolkit.database.connection import Database
from toolkit.database.tables import log_checkpoints, log_cosignatures, log_timestamps
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.log.events import record_event
from toolkit.log.merkle import consistency_proof
from toolkit.log.notes import VerifierKey, lines_of, text_of
from toolkit.log.sealing import signed_state, tiles_of

if TYPE_CHECKING:
    from rfc3161_client import TimeStampResponse
    from rfc3161_client.tsp import TimeStampTokenInfo

_KNOWN: Final = 1000  # the newest checkpoints, of which a witness may have signed one

_SECONDS: Final = 30
_LARGEST: Final = 1 << 20


def request_for(database: Database, witness: VerifierKey | None = None, old: int | None = None) -> str:
    """Return the request to sign the newest checkpoint: the size that the witness knows, the proof, and it.

    That size is ``old``, else that of the newest cosignature of the witness that is kept here, else none.

    Raises:
        InvalidInput: nothing is in the log yet, or it has no such size.
    """
    with database.transaction() as connection:
        signed, kept = signed_state(connection), log_cosignatures.c
        if old is None:
            old = connection.scalar(sa.select(sa.func.max(kept.size)).where(kept.witness == str(witness))) or 0
        if old > signed.size:
            raise InvalidInput(
                "The log has {:,} entries, and the witness knows {:,}: its end was cut off, or it is another log.",
                signed.size,
                old,
            )
        proof = consistency_proof(tiles_of(connection), old, signed.size)
    return f"old {old}\n{lines_of(proof)}\n{signed.note}"


def keep_cosignature(database: Database, witness: VerifierKey, lines: str, now: datetime) -> tuple[int, datetime]:
    """Keep the line that a witness answered with, whichever checkpoint of this log it signed.

    Returns:
        The number of entries of that checkpoint, and when the witness signed it.

    Raises:
        InvalidInput: no line is a signature of this witness under a checkpoint of this log.
    """
    with database.transaction() as connection:
        newest = sa.select(log_checkpoints.c.size, log_checkpoints.c.note, log_checkpoints.c.vkey)
        for size, note, vkey in connection.execute(newest.order_by(log_checkpoints.c.size.desc()).limit(_KNOWN)):
            if VerifierKey.parse(vkey).public == witness.public:
                raise InvalidInput("The key of the log is no witness of it.")
            for line in lines.splitlines():
                if (moment := witness.cosigned_at(text_of(note), f"{line}\n")) is not None:
                    row = {"size": size, "witness": str(witness), "line": f"{line}\n"}
                    row |= {"signed_at": moment, "added_at": now}
                    connection.execute(insert(log_cosignatures).values(row).on_conflict_do_nothing())
                    return size, moment
    raise InvalidInput("No line is a signature of {} under a checkpoint of this log.", witness.name)


def ask_witness(database: Database, witness: VerifierKey, url: str, now: datetime) -> tuple[int, datetime]:
    """Ask a witness over HTTP (``add-checkpoint``) to sign the newest checkpoint; as ``keep_cosignature``.

    Raises:
        InvalidInput: it does not answer, refuses, or its answer is no signature of it.
    """
    address, known = f"{url.rstrip('/')}/add-checkpoint", None
    for _ in range(2):
        status, content = _posted(address, request_for(database, witness, known).encode(), "text/plain")
        answer = content.decode("utf-8", "replace").strip()
        if status != 409 or not re.fullmatch("[0-9]{1,18}", answer):
            break
        known = int(answer)  # the size that it knows
    if status != 200:
        raise InvalidInput("The witness {} refused: status {}. {}", witness.name, status, repr(answer[:200]))
    return keep_cosignature(database, witness, answer, now)


def ask_authority(database: Database, url: str, now: datetime) -> tuple[int, datetime | None]:
    """Have an authority stamp the newest checkpoint, and keep its answer.

    Returns:
        The number of entries that it stamped, and the time; ``None`` where that cannot be read here.

    Raises:
        InvalidInput: nothing is in the log yet; nobody answers; the authority refused, or stamped something else.
    """
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    signed = database.run(signed_state)
    stamped = signed.note.encode()
    asked = TimestampRequestBuilder().data(stamped).hash_algorithm(HashAlgorithm.SHA256).build()
    status, token = _posted(url, asked.as_bytes(), "application/timestamp-query")
    if status != 200:
        raise InvalidInput("The authority refused: {}", f"status {status}")
    answer, granted = _read(token)
    if answer is not None and granted is None:
        raise InvalidInput("The authority refused: {}", ", ".join(answer.status_string or ()))
    imprint = sha256(stamped).digest()
    if granted is None:
        ours = imprint in token
    else:
        ours = (granted.message_imprint.message, granted.nonce) == (imprint, asked.nonce)
    if not ours:
        raise InvalidInput("The authority stamped something else than was asked for.")
    with database.transaction() as connection:
        row = {"size": signed.size, "token": token, "added_at": now}
        connection.execute(sa.insert(log_timestamps), row)
        detail = {"size": signed.size, "token": sha256(token).hexdigest()}
        record_event(connection, CustodyEvent.TIMESTAMPED, now, detail)
    return signed.size, None if granted is None else granted.gen_time.astimezone(UTC)


def said_of(connection: Connection, size: int) -> tuple[str, bytes]:
    """Return the lines of all witnesses under the state of this size, and its first stamp; each may be empty."""
    lines, tokens = log_cosignatures.c, log_timestamps.c
    signed = connection.scalars(sa.select(lines.line).where(lines.size == size).order_by(lines.witness))
    token = connection.scalar(sa.select(tokens.token).where(tokens.size == size).order_by(tokens.id).limit(1))
    return "".join(signed), token or b""


def stamped_at(token: bytes, stamped: bytes, authorities: Path) -> datetime | Literal[False] | None:
    """Return when an authority that these certificates vouch for stamped these bytes; ``None`` if unreadable here.

    It is ``False`` where none of them stamped these bytes. ``authorities`` is a PEM file: its self-signed
    certificates are trusted, the others lead to them.

    Raises:
        UnreadableFile: it holds no certificate.
    """
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import VerificationError, VerifierBuilder

    try:
        certificates = load_pem_x509_certificates(authorities.read_bytes())
    except (OSError, ValueError):
        raise UnreadableFile("{} holds no certificates in PEM.", authorities) from None
    roots = [each for each in certificates if each.issuer == each.subject]
    if not roots:
        raise UnreadableFile("{} holds no self-signed certificate, which others rest on.", authorities)
    others = [each for each in certificates if each not in roots]
    verifier = VerifierBuilder(roots=roots, intermediates=others).build()
    answer, granted = _read(token)
    if answer is None or (granted and len(granted.message_imprint.message) < sha256().digest_size):  # SHA-1
        return None
    if granted is None:
        return False
    try:
        return verifier.verify_message(answer, stamped) and granted.gen_time.astimezone(UTC)
    except ValueError:
        return None
    except VerificationError:
        return False


def _read(token: bytes) -> tuple[TimeStampResponse | None, TimeStampTokenInfo | None]:
    """Read an answer, and what it grants; ``openssl ts`` reads some that are nothing here."""
    from rfc3161_client import PKIStatus, decode_timestamp_response

    try:
        answer = decode_timestamp_response(token)
        granted = answer.status in {PKIStatus.GRANTED, PKIStatus.GRANTED_WITH_MODS}
        return answer, answer.tst_info if granted else None
    except ValueError:  # a set of certificates that is not sorted, for one
        return None, None


def _posted(url: str, body: bytes, content_type: str) -> tuple[int, bytes]:
    """Send a body; return the status and the answer, which may have a mebibyte and take half a minute."""
    import urllib3

    if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise InvalidInput("The address begins with https://, not {!r}.", url[:20])
    pool = urllib3.PoolManager(timeout=_SECONDS, retries=False, headers={"Content-Type": content_type})
    try:
        answer = pool.request("POST", url, body=body, preload_content=False)
        content, ends = b"", monotonic() + _SECONDS
        while part := answer.read1(_LARGEST):
            content += part
            if len(content) > _LARGEST or monotonic() > ends:
                raise InvalidInput("The answer of {} is too long, or comes too slowly.", url)
        return answer.status, content
    except urllib3.exceptions.HTTPError:
        raise InvalidInput("Nobody answers at {}.", url) from None
