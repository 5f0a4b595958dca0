"""Draw the pages of an untrusted PDF for people, in a process of its own that a hostile file may break.

Run as a module, it is that process: it reads the file that is its standard input, and writes each page as a line.
"""

import os
import subprocess
import sys
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import IO, Final

import toolkit
from toolkit.evidence.inspection import confine

PAGES: Final = 10
"""The first pages, which are drawn."""

_WIDTH: Final = 900
_SECONDS: Final = 30


def drawn_pages(file: IO[bytes]) -> list[bytes]:
    """Return the first pages of a PDF as PNG, those that could be drawn in time."""
    folder = str(Path(toolkit.__file__).parents[1])
    command = [sys.executable, "-P", "-m", "toolkit.evidence.pages"]
    given = {"PYTHONPATH": folder, "PATH": os.defpath}
    try:
        ran = subprocess.run(  # noqa: S603  # our own interpreter and module
            command, stdin=file, capture_output=True, timeout=_SECONDS, env=given, check=False
        )
    except subprocess.TimeoutExpired as error:
        return [b64decode(line) for line in (error.stdout or b"").splitlines()[:-1]]
    return [b64decode(line) for line in ran.stdout.splitlines()]


def _draw() -> None:
    import pypdfium2

    confine()
    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    document.init_forms()
    for page in (document[number] for number in range(min(len(document), PAGES))):
        picture = BytesIO()
        page.render(scale=_WIDTH / max(page.get_size())).to_pil().save(picture, "PNG")
        print(b64encode(picture.getvalue()).decode(), flush=True)


if __name__ == "__main__":
    _draw()
