"""The keys that bearer tokens are checked with: one secret, one public key, or a JSON Web Key Set with several."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from toolkit.errors import SettingsError
from toolkit.settings import Settings

Algorithm = Literal["HS256", "RS256", "ES256"]
PublicKey = RSAPublicKey | EllipticCurvePublicKey

SECRET_MIN_BYTES: Final = 32
"""An HS256 secret shorter than its hash can be guessed from one token (RFC 7518, section 3.2)."""

SECRET_MIN_VARIETY: Final = 8
"""Different bytes in a secret; 32 random hexadecimal digits practically always have more."""

RSA_MIN_BITS: Final = 2048

MAKE_A_SECRET: Final = "Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"  # noqa: S105  # advice

_SECRET: Final = "TOOLKIT_JWT_SECRET"  # noqa: S105  # the name of a variable
_PUBLIC: Final = "TOOLKIT_JWT_PUBLIC_KEY"
_SET: Final = "TOOLKIT_JWT_JWKS"


@dataclass(frozen=True, slots=True)
class Key:
    """One key with the one algorithm that it is for."""

    algorithm: Algorithm
    value: str | bytes | PublicKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The keys by their ids (``kid``); the algorithm follows from the key, never from the token.

    ``only`` checks tokens whatever id they name; where there is a set, it checks those that name none.
    """

    only: Key | None
    by_id: Mapping[str, Key] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, settings: Settings) -> TokenKeys:
        """Return the keys that the environment gives.

        Raises:
            SettingsError: there is none, there are two sources, or a key is weak or unreadable.
        """
        sources = {_SECRET: settings.jwt_secret, _PUBLIC: settings.jwt_public_key, _SET: settings.jwt_jwks}
        given = [name for name, value in sources.items() if value is not None]
        if len(given) > 1:
            raise SettingsError(
                f"{' and '.join(given)} are both set; keys come from one place: unset the others. Several keys at "
                f"once are for {_SET}"
            )
        if settings.jwt_secret is not None:
            return cls(Key("HS256", _strong(settings.jwt_secret, _SECRET)))
        if settings.jwt_public_key is not None:
            return cls(_public(_from_pem(settings.jwt_public_key), _PUBLIC))
        if settings.jwt_jwks is not None:
            return _key_set(settings.jwt_jwks)
        raise SettingsError(
            f"There is no key to check bearer tokens with: set {_SECRET} (HS256), {_PUBLIC} (RS256 or ES256, PEM) "
            f"or {_SET} (a file with a JSON Web Key Set). {MAKE_A_SECRET}"
        )

    def of(self, key_id: str | None) -> Key | None:
        """Return the key for a token that names this id, or none."""
        if not self.by_id:
            return self.only
        return self.only if key_id is None else self.by_id.get(key_id)

    def signing(self) -> tuple[str | None, Key] | None:
        """Return the first secret and its id, to sign with; ``None`` where there are public keys only."""
        for key_id, key in [(None, self.only), *self.by_id.items()]:
            if key is not None and key.algorithm == "HS256":
                return key_id, key
        return None


def _strong(secret: str | bytes, name: str) -> str | bytes:
    content = secret.encode() if isinstance(secret, str) else secret
    try:
        jwt.get_algorithm_by_name("HS256").prepare_key(secret)
    except jwt.InvalidKeyError:
        raise SettingsError(
            f"{name} looks like a public key, which is no secret; {_PUBLIC} is for those"
        ) from None
    if len(content) < SECRET_MIN_BYTES:
        raise SettingsError(f"{name} is too short to be safe: at least {SECRET_MIN_BYTES} bytes. {MAKE_A_SECRET}")
    if len(set(content)) < SECRET_MIN_VARIETY or _repeats(content):
        raise SettingsError(f"{name} repeats itself and can be guessed. {MAKE_A_SECRET}")
    return secret


def _repeats(content: bytes) -> bool:
    """Tell whether a part of at most half the length is written over and over."""
    return any(content[period:] == content[:-period] for period in range(1, len(content) // 2 + 1))


def _from_pem(pem: str) -> object:
    # Line breaks often reach an environment variable as the two characters \n.
    text = pem.replace("\\n", "\n")
    if "PRIVATE KEY" in text:
        raise SettingsError(f"{_PUBLIC} holds a private key; give the public one, and renew this pair")
    try:
        return load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(f"{_PUBLIC} is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)") from None


def _public(key: object, name: str) -> Key:
    if isinstance(key, RSAPublicKey) and key.key_size >= RSA_MIN_BITS:
        return Key("RS256", key)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return Key("ES256", key)
    raise SettingsError(f"{name} must be an RSA key of {RSA_MIN_BITS} bits or more (RS256) or a P-256 key (ES256)")


def _key_set(path: Path) -> TokenKeys:
    try:
        documents = json.loads(path.read_text("utf-8"))["keys"]
        described = [document for document in documents if document.get("use", "sig") == "sig"]
    except OSError as error:
        raise SettingsError(f"{_SET}: {path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SettingsError(f"{_SET}: {path} holds no JSON Web Key Set: an object with a list of keys") from None
    keys: dict[str | None, Key] = {}
    for place, document in enumerate(described, start=1):
        name = f"{_SET}: key {place} of {path}"
        key_id = document.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise SettingsError(f"{name} has a kid that is not text")
        if key_id in keys:
            raise SettingsError(f"{name} has the kid of another one, or both have none")
        keys[key_id] = _from_document(document, name)
    if not keys:
        raise SettingsError(f"{_SET}: {path} holds no key for signatures")
    return TokenKeys(keys.pop(None, None), {key_id: key for key_id, key in keys.items() if key_id is not None})


def _from_document(document: Mapping[str, Any], name: str) -> Key:
    if "d" in document:
        raise SettingsError(f"{name} is a private key; give the public one, and renew this pair")
    try:
        key = jwt.PyJWK.from_dict(dict(document)).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        raise SettingsError(f"{name} cannot be understood as a key") from None
    found = Key("HS256", _strong(key, name)) if isinstance(key, bytes) else _public(key, name)
    if document.get("alg", found.algorithm) != found.algorithm:
        raise SettingsError(f"{name} is for another algorithm than HS256, RS256 or ES256")
    return found
