"""Read the length that an audio container declares, without decoding it."""

import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolkit.domain.signatures import adts_frame_length, mpeg_frame_length


class Broken(Exception):
    """The file is not what its start promises; kept within this package."""


_STREAMED: Final = frozenset((0, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000))
"""Sizes that a recorder writes when it could not know better."""

_TELEPHONE_CODECS: Final = frozenset((0x14, 0x42, 0x45, 0x64, 0x65, 0x83, 0x111))
"""WAV format tags of G.722, G.723, G.726 and G.729 in the numbers of several makers."""

_LOST_BYTES: Final = 0.01
"""The part of an MPEG stream that may be missing at its end: tags at the end are counted by some encoders."""

_XING: Final = re.compile(rb"(?:Xing|Info)\0\0\0(.)", re.DOTALL)
_AMR_FRAME_BYTES: Final = {
    b"#!AMR\n": (13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1),
    b"#!AMR-WB\n": (18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1),
}
"""Bytes in a frame of 20 ms, its header included, by frame type (RFC 4867)."""

_AMR_SPEECH: Final = {b"#!AMR\n": 8, b"#!AMR-WB\n": 9}
"""Frame types from here on are comfort noise, lost speech and no data."""

_OGG_HEADER: Final = 27
"""Bytes of a page before its table of sizes; the last of them counts the sizes."""

_LEAST_BYTES: Final = {"audio/wav": 600, "audio/mp4": 100}
"""Bytes in a second of the poorest speech; a file that claims to need fewer lasts shorter than it says."""

_CLUSTER: Final = b"\x1f\x43\xb6\x75"
"""The part of a Matroska file that holds sound."""

_ASF_DATA: Final = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")

_MP4_PARENTS: Final = frozenset((b"moov", b"trak", b"mdia"))


class NotAudio(Exception):
    """The container holds pictures; kept within this package."""


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """Open a recording for the following."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def check_complete(data: mmap.mmap, media_type: str) -> None:
    """Compare the size that the container declares with the one that is there.

    Raises:
        Broken: the end is missing.
    """
    if media_type in _SIZES:
        declared, there = _SIZES[media_type](data)
        if there < declared * (1 - _LOST_BYTES):
            raise Broken


def has_telephone_codec(data: mmap.mmap, media_type: str) -> bool:
    """Tell whether a WAV file holds a codec of telephone recorders that libsndfile does not decode."""
    return media_type == "audio/wav" and _wave(data).codec in _TELEPHONE_CODECS


def wav_seconds(data: mmap.mmap) -> float:
    """Return the length of a WAV file by its size and the rate that it declares."""
    wave = _wave(data)
    return wave.there / max(wave.bytes_per_second, _LEAST_BYTES["audio/wav"])


def wave_samples(data: mmap.mmap) -> bytes:
    """Return the samples of a WAV file as they lie there; ``Broken`` where there are none."""
    wave = _wave(data)
    start = len(data) - wave.there
    return data[start : start + (wave.declared or wave.there)]


def after_tag(data: mmap.mmap) -> int:
    """Return the place behind the ID3 tag of an MPEG recording."""
    if data[:3] != b"ID3":
        return 0
    return 10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9])


def mp4_seconds(data: mmap.mmap) -> float | None:
    """Return the length that the movie header declares; ``None`` where it is left open.

    Raises:
        Broken: a box ends after the file, there is no track with sound, or nothing in it.
        NotAudio: there is a track with pictures.
    """
    seconds: float | None = None
    handlers, sound = set(), 0
    for name, start, end in _mp4_boxes(data, 0, len(data)):
        if name == b"hdlr":
            handlers.add(data[start + 8 : start + 12])
        elif name == b"mvhd":
            seconds = _mvhd_seconds(data[start:end])
        elif name == b"mdat":
            sound += end - start
    if b"vide" in handlers:
        raise NotAudio
    if b"soun" not in handlers or not sound:
        raise Broken
    return seconds and min(seconds, sound / _LEAST_BYTES["audio/mp4"])


def adts_seconds(data: mmap.mmap) -> float:
    """Return the length of a bare AAC stream, by its frames."""
    rates = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)
    position = frames = 0
    while (length := adts_frame_length(data[position : position + 7])) is not None:
        position += length
        frames += 1
    if position > len(data):
        raise Broken
    return frames * 1024 / rates[data[2] >> 2 & 15]


def amr_seconds(data: mmap.mmap) -> float:
    """Return the length of an AMR recording, by its frames with speech: what else there is holds no sound."""
    magic = next(magic for magic in _AMR_FRAME_BYTES if data[: len(magic)] == magic)
    position, frames = len(magic), 0
    while position < len(data):
        kind = data[position] >> 3 & 15
        position += _AMR_FRAME_BYTES[magic][kind]
        frames += kind < _AMR_SPEECH[magic]
    if position > len(data):
        raise Broken
    return frames * 0.02


@dataclass(frozen=True, slots=True)
class _Wave:
    codec: int
    bytes_per_second: int
    declared: int
    there: int


def _wave(data: mmap.mmap) -> _Wave:
    position, codec, rate, long = 12, 0, 0, 0
    while position + 8 <= len(data):
        name, size = data[position : position + 4], int.from_bytes(data[position + 4 : position + 8], "little")
        position += 8
        if name == b"fmt ":
            codec = int.from_bytes(data[position : position + 2], "little")
            rate = int.from_bytes(data[position + 8 : position + 12], "little")
        elif name == b"data":
            return _Wave(codec, rate, long if size in _STREAMED else size, len(data) - position)
        elif name == b"ds64":
            long = int.from_bytes(data[position + 8 : position + 16], "little")
        position += size + size % 2
    raise Broken


def _wave_sizes(data: mmap.mmap) -> tuple[int, int]:
    """Return the bytes of sound that the header declares, and those there."""
    wave = _wave(data)
    return wave.declared, wave.there


def _holding(part: bytes) -> Callable[[mmap.mmap], tuple[int, int]]:
    """Return a reading that declares nothing, and raises ``Broken`` where the part with the sound is missing."""

    def sizes(data: mmap.mmap) -> tuple[int, int]:
        if data.find(part) < 0:
            raise Broken
        return 0, len(data)

    return sizes


def _mpeg_sizes(data: mmap.mmap) -> tuple[int, int]:
    """Return the bytes that the encoder's own header names, if it left one in the first frame, and those there."""
    start = after_tag(data)
    length = mpeg_frame_length(data[start : start + 4])
    found = _XING.search(data, start, start + 200) if length else None
    if found is None or not found[1][0] & 2:
        return 0, len(data) - start
    place = found.end() + (4 if found[1][0] & 1 else 0)
    return int.from_bytes(data[place : place + 4], "big"), len(data) - start


def _aiff_sizes(data: mmap.mmap) -> tuple[int, int]:
    """Return the bytes that the outermost chunk declares, and those there."""
    size = int.from_bytes(data[4:8], "big")
    return 0 if size in _STREAMED else size, len(data) - 8


def _au_sizes(data: mmap.mmap) -> tuple[int, int]:
    """Return the bytes of sound that the header declares, and those there."""
    start, size = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    return 0 if size in _STREAMED else size, len(data) - start


def _ogg_sizes(data: mmap.mmap) -> tuple[int, int]:
    """Return that nothing is declared: a page that begins in the file must end in it, and the next one follow.

    Raises:
        Broken: the last page is cut, or pages come after something that is none.
    """
    position = 0
    while data[position : position + 4] == b"OggS":
        table = position + _OGG_HEADER
        sizes = data[table : table + data[table - 1]] if table <= len(data) else None
        if sizes is None or len(sizes) < data[table - 1] or (end := table + len(sizes) + sum(sizes)) > len(data):
            raise Broken
        position = end
    if data.find(b"OggS", position) >= 0:
        raise Broken
    return 0, len(data)


_SIZES: Final = {
    "audio/wav": _wave_sizes,
    "audio/webm": _holding(_CLUSTER),
    "audio/x-ms-wma": _holding(_ASF_DATA),
    "audio/mpeg": _mpeg_sizes,
    "audio/aiff": _aiff_sizes,
    "audio/basic": _au_sizes,
    "audio/ogg": _ogg_sizes,
}
"""Gives the size that each container declares and the one that is there."""


def _mp4_boxes(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name and the content's place of each box between two places, nested boxes that matter included."""
    while start + 8 <= end:
        size, name, header = int.from_bytes(data[start : start + 4], "big"), data[start + 4 : start + 8], 8
        if size == 1:
            size, header = int.from_bytes(data[start + 8 : start + 16], "big"), 16
        last = end if size == 0 else start + size
        if last > end or last < start + header:
            raise Broken
        yield name, start + header, last
        if name in _MP4_PARENTS:
            yield from _mp4_boxes(data, start + header, last)
        start = last


def _mvhd_seconds(box: bytes) -> float | None:
    scale, length = (box[20:24], box[24:32]) if box[:1] == b"\1" else (box[12:16], box[16:20])
    per_second, units = int.from_bytes(scale, "big"), int.from_bytes(length, "big")
    return units / per_second if per_second and units else None
