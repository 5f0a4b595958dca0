"""Inspect recordings: length, silence, damage.

What libsndfile decodes (WAV, MPEG, FLAC, Ogg, AIFF, AU, CAF) is decoded from beginning to end. Of the other
containers only the structure is read; whether they are silent stays open.
"""

from pathlib import Path
from typing import Final

import soundfile

from toolkit.domain.contents import SHORTEST_SECONDS, ContentProblem
from toolkit.operations.verify.contents import containers
from toolkit.operations.verify.contents.containers import Broken

LONGEST_DECODED: Final = 4 * 3600
"""Seconds that are decoded at most; a small file may claim to hold years of silence."""

SILENCE: Final = 0.002
"""A recording whose samples never differ by more, of a full range of 2, is silent: 60 dB below the loudest."""

_BLOCK_SAMPLES: Final = 1 << 18

_DECODED: Final = frozenset(
    ("audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", "audio/aiff", "audio/basic", "audio/x-caf")
)

_SECONDS_OF: Final = {
    "audio/wav": containers.wav_seconds,
    "audio/mp4": containers.mp4_seconds,
    "audio/aac": containers.adts_seconds,
    "audio/amr": containers.amr_seconds,
    "audio/amr-wb": containers.amr_seconds,
}


def inspect_audio(path: Path, media_type: str) -> tuple[ContentProblem | None, float | None]:
    """Return the recording's fault, if any, and its length in seconds where that can be told."""
    seconds: float | None
    silent = False
    try:
        containers.check_complete(path, media_type)
        if is_decoded(path, media_type):
            seconds, silent = _decoded(path)
        else:
            seconds = _SECONDS_OF[media_type](path) if media_type in _SECONDS_OF else None
    except Broken:
        return ContentProblem.DAMAGED, None
    if seconds is not None and seconds < SHORTEST_SECONDS:
        return ContentProblem.TOO_SHORT, seconds
    return (ContentProblem.SILENT if silent else None), seconds


def is_decoded(path: Path, media_type: str) -> bool:
    """Tell whether a recording that is whole is decoded, so that its silence is known."""
    return media_type in _DECODED and not containers.has_telephone_codec(path, media_type)


def _decoded(path: Path) -> tuple[float, bool]:
    """Return the seconds that could be decoded, and whether they are silent."""
    low, high, frames = 1.0, -1.0, 0
    try:
        with soundfile.SoundFile(path) as file:
            most = LONGEST_DECODED * file.samplerate
            per_block = max(1, _BLOCK_SAMPLES // file.channels)
            while frames < most and len(block := file.read(per_block, dtype="float32")):
                low, high = min(low, float(block.min())), max(high, float(block.max()))
                frames += len(block)
            seconds = frames / file.samplerate
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        raise Broken from None
    if not frames:
        raise Broken
    return seconds, high - low < SILENCE
