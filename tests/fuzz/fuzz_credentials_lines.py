"""The JSON Lines of credentials: each line is read, or refused with its number."""

from __future__ import annotations

import base64
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.mutations import mutated
from toolkit.errors import UnreadableFile
from toolkit.evidence.upload import read_credentials

POLICY = {
    "expiration": "2030-01-01T00:00:00Z",
    "conditions": [{"bucket": "evidence"}, ["content-length-range", 1, 1000], ["eq", "$key", "a"]],
}
WORDS = [
    *(
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"9" * 400,
        b"[" * 3000,
        b'{"a":' * 3000,
        b"\xff\xfe",
        b"\0",
        b"\n",
        b"\r",
    ),
    *(b'"\\ud800"', b"\\u0000", b'"url": "file:///etc/passwd"', b'"url": "http://[::1"', b'"evidenceType": "KYC"'),
    *(
        b'"Policy": "e30="',
        b'"Policy": "' + b"A" * 1000 + b'"',
        b'"id": ""',
        b'"fields": {}',
        b"\xe2\x80\xae",
        b"}{",
    ),
    *(b"content-length-range", b"Infinity", b"2030-13-01T00:00:00Z", b"9999-12-31T23:59:59-23:59"),
]


def run(chance: random.Random, until: float) -> Counter[str]:
    """Read files of a few lines, each changed in its text, its document or its policy."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "credentials.jsonl"
        while time.monotonic() < until:
            path.write_bytes(b"\n".join(_line(chance) for _ in range(chance.randint(1, 3))))
            try:
                hosts = [line.host for _, line in read_credentials(path)]
            except UnreadableFile as error:
                refused: str | None = str(error)
            else:
                refused = None
                assert all(hosts)
            assert refused is None or f"{path}, line " in refused
            counts["files read" if refused is None else "files refused"] += 1
    return counts


def _line(chance: random.Random) -> bytes:
    policy = json.dumps(POLICY).encode()
    if chance.random() < 0.5:
        policy = mutated(chance, policy, WORDS)
    fields: dict[str, Any] = {"bucket": "evidence", "key": "a", "Policy": base64.b64encode(policy).decode()}
    document: dict[str, Any] = {
        "saleId": "V-1",
        "fileName": "a.pdf",
        "evidenceType": "KYC",
        "id": "0199c0de-0000-7000-8000-000000000001",
        "url": "http://127.0.0.1:9000/evidence",
        "fields": fields,
    }
    if chance.random() < 0.5:
        place = chance.choice([document, fields])
        odd: list[object] = [None, 1, [], {}, "", "\ud800", "x" * 1000, "http://", "//", "http://a:b@c:99999/"]
        place[chance.choice(list(place))] = chance.choice(odd)
    text = json.dumps(document).encode()
    return mutated(chance, text, WORDS) if chance.random() < 0.5 else text
