"""Bearer tokens, good and bad, by hand where no library makes them; a certificate for servers."""

import hashlib
import hmac
import ipaddress
import json
import time
from datetime import UTC, datetime, timedelta

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.utils import base64url_encode


def claims(*, now=None, **changes):
    """Return good claims with changes; ``None`` leaves one out."""
    now = int(time.time()) if now is None else now
    merged = {"sub": "partner-a", "iat": now, "exp": now + 12 * 3600, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def token(payload, secret, *, alg="HS256", **header):
    """A token signed with HMAC; ``alg`` is only what its header says."""
    signed = f"{_part({'alg': alg, 'typ': 'JWT', **header})}.{_part(payload)}"
    digest = hashlib.sha384 if alg == "HS384" else hashlib.sha256
    return f"{signed}.{base64url_encode(hmac.digest(secret.encode(), signed.encode(), digest)).decode()}"


def signed(payload, key, *, alg=None):
    """A token signed with a private key: RS256 or ES256."""
    return jwt.encode(payload, key, alg or ("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"))


def public_pem(key):
    encoding, shape = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, shape).decode()


def private_pem(key):
    encoding, shape = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, shape, serialization.NoEncryption()).decode()


def _part(value):
    return base64url_encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode()


def made_certificate(folder, *names):
    """A file with a certificate of 127.0.0.1 and of these names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, names)]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private_pem(key).encode())
    return path
