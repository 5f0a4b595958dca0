"""Post a notice to an address, signed.

The header ``X-Toolkit-Signature`` holds ``t=SECONDS,v1=HEX``: the HMAC-SHA256, under the shared secret, of the
seconds, a full stop and the body. A receiver compares it and refuses old seconds; a notice that came twice has the
same ``id``.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any, Final

import urllib3
from urllib3.exceptions import HTTPError

from toolkit.entrypoints.jobs.notices.notice_settings import WebhookSettings

_TRIES_AGAIN: Final = urllib3.Retry(
    total=2,
    redirect=0,
    backoff_factor=0.5,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
)
_TIMEOUT: Final = urllib3.Timeout(connect=10, read=20)


def signature(secret: str, seconds: int, body: bytes) -> str:
    """Return the value of the header for a body that is sent at ``seconds`` since 1970."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


def post_webhook(settings: WebhookSettings, document: Mapping[str, Any]) -> str | None:
    """Post the document; return the problem, or ``None`` where it was delivered."""
    body = json.dumps(document, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "evidence-toolkit",
        "X-Toolkit-Signature": signature(settings.secret, int(time.time()), body),
    }
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request(
                "POST", settings.url, body=body, headers=headers, retries=_TRIES_AGAIN, timeout=_TIMEOUT
            )
    except HTTPError as error:
        return type(error).__name__  # its text quotes the address, which may hold a secret
    return None if 200 <= answer.status < 300 else f"the address answered {answer.status}"
