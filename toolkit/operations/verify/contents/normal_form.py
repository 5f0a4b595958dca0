"""Hash the normal form of a file: the part that is heard or seen, without anything that can be appended.

Of MPEG audio the frames without tags, the encoder's own frame and padding; of WAV the samples; of a PDF the
contents of its pages and the pictures on them, without metadata. Other files have no such form.
"""

import hashlib
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pypdf import PdfReader
from pypdf.generic import StreamObject

from toolkit.domain.signatures import mpeg_frame_length
from toolkit.operations.verify.contents.containers import after_tag, mapped, wave_samples

_SEARCHED: Final = 1024 * 1024
"""Bytes after a tag within which the first frame of audio is looked for."""

_DEPTH: Final = 3
"""The depth to which pictures within pictures are read."""

_PICTURES: Final = 10_000
"""Pictures of a page that are read; a page with more has no normal form."""


def normal_form(path: Path, media_type: str) -> str | None:
    """Return the SHA-256 of what is heard or seen; ``None`` where there is no such form, or nothing in it."""
    try:
        if media_type == "audio/mpeg":
            with mapped(path) as data:
                return _of_mpeg(data)
        if media_type == "audio/wav":
            with mapped(path) as data:
                samples = wave_samples(data).rstrip(b"\0")
            return hashlib.sha256(samples).hexdigest() if samples else None
        if media_type == "application/pdf":
            return _of_pdf(path)
    except Exception:  # a hostile file makes a reader fail in any way there is
        return None
    return None


def _of_mpeg(data: mmap.mmap) -> str | None:
    digest, frames, position = hashlib.sha256(), 0, _first_frame(data)
    while (length := mpeg_frame_length(data[position : position + 4])) is not None:
        frame = data[position : position + length]
        position += length
        if len(frame) < length:
            break
        if frames == 0 and (b"Xing" in frame[:64] or b"Info" in frame[:64]):
            continue
        digest.update(frame)
        frames += 1
    return digest.hexdigest() if frames else None


def _first_frame(data: mmap.mmap) -> int:
    start = after_tag(data)
    for position in range(start, min(len(data), start + _SEARCHED)):
        if data[position] == 0xFF and (length := mpeg_frame_length(data[position : position + 4])) is not None:
            following = data[position + length : position + length + 4]
            if not following or mpeg_frame_length(following) is not None:
                return position
    return len(data)


def _of_pdf(path: Path) -> str | None:
    digest, something = hashlib.sha256(), False
    with PdfReader(path) as reader:
        for page in reader.pages:
            contents = page.get_contents()
            text = contents.get_data() if contents is not None else b""
            digest.update(b"page %d" % len(text) + text)
            something = something or bool(text.strip())
            for number, picture in enumerate(_pictures(page.get("/Resources"), _DEPTH)):
                if number == _PICTURES:
                    return None
                digest.update(b"picture %d" % len(picture) + picture)
    return digest.hexdigest() if something else None


def _pictures(resources: Any, depth: int) -> Iterator[bytes]:
    objects = resources.get_object().get("/XObject") if resources is not None and depth else None
    for _, reference in sorted((objects.get_object() if objects is not None else {}).items()):
        item = reference.get_object()
        if isinstance(item, StreamObject):
            yield item._data
            yield from _pictures(item.get("/Resources"), depth - 1)
