"""Read the time stamps of others (RFC 3161), without database and settings.

A token that cannot be read here is never called false: ``openssl ts -verify`` reads more of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Literal

from toolkit.errors import InvalidInput, UnreadableFile


def told_by(token: bytes, stamped: bytes, nonce: int | None = None) -> datetime | None:
    """Return the time in an authority's answer about these bytes; ``None`` where it cannot be read here.

    Raises:
        InvalidInput: the authority refused, or stamped something else.
    """
    from rfc3161_client import PKIStatus, decode_timestamp_response

    try:
        answer = decode_timestamp_response(token)
        granted = answer.status in {PKIStatus.GRANTED, PKIStatus.GRANTED_WITH_MODS}
        told = answer.tst_info if granted else None
    except ValueError:  # a set of certificates that is not sorted, for one
        return None
    if told is None:
        raise InvalidInput("The authority refused: {}", ", ".join(answer.status_string or ()))
    if told.message_imprint.message != sha256(stamped).digest() or nonce not in {None, told.nonce}:
        raise InvalidInput("The authority stamped something else than was asked for.")
    return told.gen_time.astimezone(UTC)


def stamped_at(token: bytes, stamped: bytes, authorities: Path) -> datetime | Literal[False] | None:
    """Return when an authority that these certificates vouch for stamped these bytes; ``None`` if unreadable.

    It is ``False`` where none of them stamped these bytes.

    ``authorities`` is a PEM file: its self-signed certificates are trusted, the others lead to them.

    Raises:
        UnreadableFile: it holds no certificate.
    """
    from cryptography.x509 import load_pem_x509_certificates
    from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    try:
        certificates = load_pem_x509_certificates(authorities.read_bytes())
    except (OSError, ValueError):
        raise UnreadableFile("{} holds no certificates in PEM.", authorities) from None
    roots = [each for each in certificates if each.issuer == each.subject]
    if not roots:
        raise UnreadableFile("{} holds no self-signed certificate, which others rest on.", authorities)
    others = [each for each in certificates if each not in roots]
    verifier = VerifierBuilder(roots=roots, intermediates=others).build()
    try:
        answer = decode_timestamp_response(token)
        return verifier.verify_message(answer, stamped) and answer.tst_info.gen_time.astimezone(UTC)
    except ValueError:
        return None
    except VerificationError:
        return False
