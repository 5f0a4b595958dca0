"""Ask others on the network for their signature or time stamp."""

from typing import Final

import urllib3

from toolkit.errors import InvalidInput

_SECONDS: Final = 30
_LARGEST: Final = 1 << 20


def post(url: str, body: bytes, content_type: str) -> tuple[int, bytes]:
    """Send a body; return the status and the answer, of which at most a mebibyte is read.

    Raises:
        InvalidInput: the address is not one of TLS, or nobody answers there.
    """
    if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise InvalidInput("The address begins with https://, not {!r}.", url[:20])
    headers = {"Content-Type": content_type}
    try:
        answer = urllib3.request(
            "POST",
            url,
            body=body,
            headers=headers,
            timeout=_SECONDS,
            redirect=False,
            retries=0,
            preload_content=False,
        )
        return answer.status, answer.read(_LARGEST)
    except urllib3.exceptions.HTTPError:
        raise InvalidInput("Nobody answers at {}.", url) from None
