"""Inspect recordings: length, silence, damage.

What libsndfile decodes (WAV, MPEG, FLAC, Ogg, AIFF, AU, CAF) is decoded from beginning to end. Of the other
containers only the structure is read; whether they are silent stays open.
"""

from pathlib import Path
from typing import Final

import numpy as np
import soundfile

from toolkit.domain.contents import SHORTEST_SECONDS, ActivePart, ContentProblem
from toolkit.operations.verify.contents import containers
from toolkit.operations.verify.contents.containers import Broken

LONGEST_DECODED: Final = 4 * 3600
"""Seconds that are decoded at most; a small file may claim to hold years of silence."""

SILENCE: Final = 0.002
"""A part of a recording whose samples differ by less, of a full range of 2, is silent: 60 dB below the loudest."""

_PARTS_A_SECOND: Final = 20

_SOUND_SECONDS: Final = 0.25
"""A recording with less sound than this in all its parts together is silent: a click is no voice."""

_SLOWEST_RATE: Final = 4000
"""Samples in a second of the poorest speech; a file that claims to hold fewer lasts shorter than it says."""

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


def inspect_audio(
    path: Path, media_type: str
) -> tuple[ContentProblem | None, float | None, tuple[ActivePart, ...]]:
    """Return the recording's fault, if any, its length in seconds where that can be told, and what stays unclear.

    Raises:
        NotAudio: it holds pictures.
    """
    seconds: float | None
    silent = False
    try:
        with containers.mapped(path) as data:
            containers.check_complete(data, media_type)
            decoded = media_type in _DECODED and not containers.has_telephone_codec(data, media_type)
            if decoded:
                seconds, silent = _decoded(path)
            else:
                seconds = _SECONDS_OF[media_type](data) if media_type in _SECONDS_OF else None
    except (Broken, RecursionError):
        return ContentProblem.DAMAGED, None, ()
    if seconds is not None and seconds < SHORTEST_SECONDS:
        return ContentProblem.TOO_SHORT, seconds, ()
    if silent:
        return ContentProblem.SILENT, seconds, ()
    return None, seconds, () if decoded else (ActivePart.UNCLEAR,)


def _decoded(path: Path) -> tuple[float, bool]:
    """Return the seconds that could be decoded, and whether they are silent."""
    frames = sounding = 0
    try:
        with soundfile.SoundFile(path) as file:
            rate = max(file.samplerate, _SLOWEST_RATE)
            part = rate // _PARTS_A_SECOND
            per_block = part * max(1, _BLOCK_SAMPLES // file.channels // part)
            while frames < LONGEST_DECODED * rate and len(
                block := file.read(per_block, dtype="float32", always_2d=True)
            ):
                samples, starts = np.nan_to_num(block, posinf=0, neginf=0), np.arange(0, len(block), part)
                spans = np.maximum.reduceat(samples, starts) - np.minimum.reduceat(samples, starts)
                sounding += int(np.count_nonzero(spans.max(axis=1) >= SILENCE))
                frames += len(block)
    except (soundfile.SoundFileError, RuntimeError, ValueError):
        raise Broken from None
    if not frames:
        raise Broken
    return frames / rate, sounding / _PARTS_A_SECOND < _SOUND_SECONDS
