"""Files that were sent as evidence and are none, or that are some and look like none, and what is said of each.

Add a world before its cure.
"""

import random
import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from tests.support.evidence_files import (
    CODECS,
    RATE,
    TEXT,
    encoded,
    moments,
    overwritten,
    page,
    pdf,
    picture,
    silence,
    spoken,
    telephone_wav,
    tone,
    video,
    voice,
    zipped,
)
from toolkit.contract.evidence import FileKind
from toolkit.evidence.inspection import Inspector, inspect_file

COUNTS = "counts"


class World(NamedTuple):
    """A file, by what makes it, and what must be said: ``COUNTS``, its fault or its other type, and its parts."""

    name: str
    make: Callable[[], bytes]
    said: str
    parts: tuple[str, ...] = ()


def sound(make, seconds=5, container="WAV"):
    return lambda: encoded(make(moments(seconds, container)), container)


def channels(*loudness, **layout):
    """A voice in several channels, in each of them as loud."""
    return lambda: encoded(np.outer(spoken(), loudness), "WAV", **layout)


def filled(container, fill):
    """A recording of which the container is whole and the sound was replaced."""

    def make():
        whole = tone(5, container)
        name = {"M4A": b"mdat", "3GP": b"mdat", "WAV": b"data", "WEBM": b"\x1f\x43\xb6\x75", "WMA": WMA_DATA}[
            container
        ]
        start = whole.find(name) + {"WEBM": 24, "WMA": 50}.get(
            container, len(name) + (4 if container == "WAV" else 0)
        )
        end = start + struct.unpack(">I", whole[start - 8 : start - 4])[0] - 8 if name == b"mdat" else len(whole)
        return whole[:start] + fill(end - start) + whole[end:]

    return make


WMA_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
zeros = bytes


def chance(size):
    """Random bytes, the same each time and in whatever order the worlds are made."""
    return random.Random(7).randbytes(size)


def sine(hertz, of):
    return 0.3 * np.sin(2 * np.pi * hertz * of)


def heard(samples, loudness):
    return np.random.default_rng(3).normal(0, loudness, len(samples))


def music(of):
    notes = (262, 330, 392, 523)
    return np.sum([sine(note, of) * (np.floor(of * 2) % 4 == place) for place, note in enumerate(notes)], axis=0)


def adts(frames):
    return bytes([0xFF, 0xF1, 0x60, 0x40, 0x00, 0xFF, 0xFC]) * frames


def cut(content):
    return content[: len(content) // 2]


def boxes(depth):
    """An MP4 of nothing but boxes in each other."""
    nested = b"".join((8 * left).to_bytes(4, "big") + b"moov" for left in range(depth, 0, -1))
    return b"\0\0\0\x14ftypM4A \0\0\0\0M4A " + nested


def with_size(wav, size):
    """A WAV whose header says so many bytes of sound."""
    place = wav.index(b"data") + 4
    return wav[:place] + struct.pack("<I", size) + wav[place + 4 :]


def broken_off(content, mark):
    """The first half, up to the last mark in it."""
    return content[: content.rfind(mark, 0, len(content) // 2)]


def of_each(name, make, said, but=()):
    """A world for each container that counts as a recording."""
    return [World(f"{name} {each}", partial(make, each), said) for each in CONTAINERS if each not in but]


CONTAINERS = sorted(set(CODECS) - {"MOV"})
PACKED = {"AAC", "FLAC", "M4A", "MP3", "OGG", "WEBM", "WMA"}
TAGGED = b"ID3\x04\x00\x00\x00\x00\x20\x00"
"""The start of a tag of 4,096 bytes."""

SPEECHLESS, UNCLEAR = ("NO_SPEECH",), ("UNCLEAR",)
SILENT, DAMAGED, SHORT = "SILENT", "DAMAGED", "TOO_SHORT"

RECORDINGS = (
    *of_each("a voice as", voice, COUNTS),
    *of_each("20 s of silence as", lambda each: silence(20, each), SILENT),
    *of_each("half a second of", lambda each: tone(0.5, each), SHORT),
    *of_each("half of", lambda each: cut(tone(2, each)), DAMAGED, but=("MP3",)),
    *of_each("zeros in", lambda each: overwritten(tone(2, each)), DAMAGED, but=tuple(set(CONTAINERS) - PACKED)),
    World("a voice as RF64", lambda: encoded(spoken(), "FLOAT", rf64="always"), COUNTS),
    World("half of a voice as RF64", lambda: cut(encoded(spoken(), "FLOAT", rf64="always")), DAMAGED),
    World("MP4 of 3,000 boxes in each other", partial(boxes, 3000), DAMAGED),
    World("M4A of zeros", filled("M4A", zeros), DAMAGED),
    World("M4A of random bytes", filled("M4A", chance), DAMAGED),
    World("AMR in 3GP of random bytes", filled("3GP", chance), DAMAGED),
    World("WebM of random bytes", filled("WEBM", chance), DAMAGED),
    World("WMA of random bytes", filled("WMA", chance), DAMAGED),
    World("WAV of random bytes", filled("WAV", chance), COUNTS, SPEECHLESS),
    World("AAC of empty frames", lambda: adts(500), DAMAGED),
    World("AMR of frames without data", lambda: b"#!AMR\n" + b"\x7c" * 500, SILENT),
    World("AMR of zeros in its frames", lambda: b"#!AMR\n" + (b"\x3c" + bytes(31)) * 250, SILENT),
    World("G.729 of zeros", lambda: telephone_wav(5), SILENT),
    World(
        "G.729 of plain text", lambda: telephone_wav(5)[:-5000] + (b"plain text " * 500)[:5000], COUNTS, SPEECHLESS
    ),
    World("a codec that nobody knows", lambda: telephone_wav(5, codec=0x9999), COUNTS, UNCLEAR),
    World("a dial tone", sound(lambda of: sine(425, of)), COUNTS, SPEECHLESS),
    World("hold music", sound(music, 20), COUNTS, SPEECHLESS),
    World("white noise", sound(lambda of: heard(of, 0.1)), COUNTS, SPEECHLESS),
    World("noise at -58 dB", sound(lambda of: heard(of, 0.00126)), COUNTS, SPEECHLESS),
    World("a voice in one of two channels", channels(1, 0), COUNTS),
    World("a voice in two channels of which one is reversed", channels(1, -1), COUNTS),
    World(
        "a voice beside a tone in the other channel",
        lambda: encoded(np.stack([spoken(), sine(440, np.arange(len(spoken())) / RATE)], axis=1), "MP3"),
        COUNTS,
    ),
    World("a voice twice as fast", lambda: encoded(spoken()[::2], "WAV"), COUNTS),
    World("a voice in one of eight channels", channels(1, *[0] * 7, layout="7.1"), COUNTS),
    World(
        "half a second of a voice in a minute of a tone",
        lambda: encoded(np.concatenate([sine(440, moments(60, "WAV")), spoken()[: RATE // 2]]), "WAV"),
        COUNTS,
        SPEECHLESS,
    ),
    World(
        "a WAV whose recorder could not say how long it is", lambda: with_size(voice("WAV"), 0xFFFFFFFF), COUNTS
    ),
    World("a WAV of sox behind a pipe", lambda: with_size(voice("WAV"), 0x7FFFF000), COUNTS),
    World("a WAV whose recorder never came to its header", lambda: with_size(voice("WAV"), 0), COUNTS),
    World("a WAV that says to be longer", lambda: with_size(voice("WAV"), 10**8), DAMAGED),
    World("a WAV that says to last half a second", lambda: with_size(voice("WAV"), RATE), SHORT),
    World("an Ogg that breaks off between two pages", lambda: broken_off(voice("OGG"), b"OggS"), COUNTS, UNCLEAR),
    World("a WebM that breaks off", lambda: broken_off(voice("WEBM"), b"\xa3"), DAMAGED),
    World("a GIF before a PDF", lambda: b"GIF89a" + bytes(20) + pdf(), "image/gif"),
    World("a JPEG before a PDF", lambda: b"\xff\xd8\xff\xe0" + bytes(20) + pdf(), "image/jpeg"),
    World("a voice as if sampled at 100 Hz", lambda: encoded(spoken()[::4], "FLOAT", 100), DAMAGED),
    World("a voice at -60 dB", lambda: encoded(spoken() / 1000, "FLOAT"), SILENT),
    World("one beep in a minute of silence", sound(lambda of: sine(440, of) * (of < 0.3), 60), COUNTS, SPEECHLESS),
    World("a click", sound(lambda of: np.where(of == 2, 0.9, 0)), SILENT),
    World("a DC offset", sound(lambda of: of * 0 + 0.5), SILENT),
    World("samples that are no numbers", sound(lambda of: of * np.nan, container="FLOAT"), SILENT),
    World("a voice before a PDF", lambda: voice() + pdf(), COUNTS),
    World(
        "a voice behind a tag that holds a PDF", lambda: TAGGED + page(TEXT).ljust(4096, b"\0") + voice(), COUNTS
    ),
    World("AAC behind a tag of MP3", lambda: TAGGED + bytes(4096) + voice("AAC"), COUNTS),
    World("FLAC behind a tag of MP3", lambda: TAGGED + bytes(4096) + voice("FLAC"), COUNTS),
    World("CAF that leads behind its end", lambda: voice("CAF") + b"TAG" + b"a" * 125, DAMAGED),
    World("two MP3 and a tag between them", lambda: voice() + TAGGED + bytes(4096) + voice(), COUNTS),
    World("a track of silence before one of a voice", lambda: encoded(spoken(), "M4A", tracks=2), COUNTS, UNCLEAR),
    World("ID3 alone", lambda: b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10) + bytes(500), DAMAGED),
    World("half of an MP3 whose header says more", lambda: cut(voice()), COUNTS, UNCLEAR),
    World("half of an MP3 whose header says nothing", lambda: cut(voice().replace(b"Info", b"none")), COUNTS),
    World("MP3 with random bytes in the middle", lambda: overwritten(voice(), chance), DAMAGED),
    World("two MP3 frames and garbage", lambda: tone(5)[:300] + chance(9000), DAMAGED),
    World("WAV that claims ten minutes and has one second", lambda: tone(600, "WAV")[: 44 + 2 * RATE], DAMAGED),
    World("PCM in MOV", lambda: tone(5, "MOV"), "video/quicktime"),
    World("a video with sound as MP4", lambda: video("mp4", "mpeg4", "aac"), "video/mp4"),
    World("a video with sound as MOV", lambda: video("mov", "mpeg4", "aac"), "video/quicktime"),
    World("a video with sound as AVI", lambda: video("avi", "mpeg4", "libmp3lame"), "video/x-msvideo"),
    World("a video with sound as WebM", lambda: video("webm", "libvpx", "libopus"), "video/webm"),
    World("a PDF named as a recording", pdf, COUNTS),
)

WHITE = b"1 1 1 rg 0 0 595 842 re f "
BLANK = ("BLANK",)
PHOTOGRAPH = chance(400 * 400)


def opening(action):
    """A document that does something as soon as it is opened."""
    return lambda: page(TEXT, catalog=b"/OpenAction << %s >>" % action)


FIELD = b"<< /Type /Annot /Subtype /Widget /Rect [72 600 400 630] %s >>"


def pressing(action):
    """A document that does something as soon as somebody presses the mouse on a field of it."""
    return lambda: page(TEXT, page=b"/Annots [%s]" % (FIELD % b"/AA << /D << %s >> >>" % action))


FREE_TEXT = (
    b"/Annots [<< /Type /Annot /Subtype /FreeText /Rect [50 600 400 700] /DA (/Helv 12 Tf 0 g) %s"
    b" /Contents (Contrato de energia) >>]"
)

ATTACHED = b"/Names << /EmbeddedFiles << /Names [(a) << /Type /Filespec /F (a.exe) /EF << /F 6 0 R >> >>] >> >>"

DOCUMENTS = (
    World("a text", lambda: page(TEXT), COUNTS),
    World("a short word in small print", lambda: page(b"BT /F1 8 Tf 72 700 Td (sim) Tj ET"), COUNTS),
    World("text nearly white on white", lambda: page(b"0.97 g " + TEXT), COUNTS, BLANK),
    World("text covered by a white box", lambda: page(TEXT + b" " + WHITE), COUNTS, BLANK),
    World("text outside the crop box", lambda: page(TEXT, page=b"/CropBox [400 0 595 200]"), COUNTS, BLANK),
    World("text on a hidden layer", lambda: page(
        b"/OC /L BDC " + TEXT + b" EMC",
        catalog=b"/OCProperties << /OCGs [6 0 R] /D << /BaseState /OFF /OFF [6 0 R] >> >>",
        resources=b"/Properties << /L 6 0 R >>",
        objects=(b"<< /Type /OCG /Name (L) >>",),
    ), COUNTS, BLANK),
    World("text of one tenth of a point", lambda: page(TEXT.replace(b"12 Tf", b"0.1 Tf")), COUNTS, BLANK),
    World("a page of black", lambda: page(b"0 0 595 842 re f"), COUNTS, BLANK),
    World("a page without contents", lambda: page(b""), COUNTS, BLANK),
    World("a page number alone", lambda: page(b"BT /F1 10 Tf 280 30 Td (- 12 -) Tj ET"), COUNTS, BLANK),
    World("a head alone", lambda: page(b"BT /F1 10 Tf 72 810 Td (Pagina 1 de 1) Tj ET"), COUNTS, BLANK),
    World("a page of the size of a wall", lambda: page(TEXT, box=b"0 0 14400 14400"), COUNTS, BLANK),
    World("a page that is turned", lambda: page(TEXT, page=b"/Rotate 90"), COUNTS),
    World("a page whose corners changed places", lambda: page(TEXT, box=b"595 842 0 0"), COUNTS),
    World("a note on an empty page", lambda: page(b"", page=FREE_TEXT % b""), COUNTS),
    World("a hidden note on an empty page", lambda: page(b"", page=FREE_TEXT % b"/F 2"), COUNTS, BLANK),
    World("a field that is filled in and was never drawn", lambda: page(
        b"", page=b"/Annots [6 0 R]", catalog=b"/AcroForm << /Fields [6 0 R] /DR << /Font << /F1 5 0 R >> >> >>",
        objects=(FIELD % b"/FT /Tx /T (a) /V (Ana) /DA (/F1 12 Tf 0 g)",),
    ), COUNTS),
    World("a frame without anything in it", lambda: page(b"50 50 495 742 re S"), COUNTS),
    World("one dot", lambda: page(b"300 400 2 2 re f"), COUNTS, BLANK),
    World("a photograph", lambda: picture(PHOTOGRAPH, 400), COUNTS),
    World("a scan of a white sheet with faint noise",
        lambda: picture(bytes(244 + each % 12 for each in PHOTOGRAPH), 400), COUNTS, BLANK),
    World("encrypted for its owner only", lambda: pdf(password=""), COUNTS),
    World("encrypted for everybody", lambda: pdf(password="secret"), "ENCRYPTED"),
    World("encrypted for the holder of a certificate", lambda: page(TEXT).replace(
        b"/Root 1 0 R", b"/Root 1 0 R /ID [(a) (a)] /Encrypt << /Filter /Adobe.PubSec /V 4 >>"
    ), "ENCRYPTED"),
    World("half of it", lambda: page(TEXT)[:400], DAMAGED),
    World("zeros in a third of it", lambda: overwritten(picture(chance(500 * 500), 500)), COUNTS, UNCLEAR),
    World("a page that is lost",
        lambda: page(TEXT).replace(b"/Count 1", b"/Count 2"), COUNTS, UNCLEAR),
    World("no page", lambda: pdf(pages=0), DAMAGED),
    World("after 900 bytes of something else", lambda: b"#" * 900 + pdf(), COUNTS, ("APPENDED",)),
    World("after 1,100 bytes of something else", lambda: b"#" * 1100 + pdf(), "application/octet-stream"),
    World("after a shell script",
        lambda: b"#!/bin/sh\nexit 0 # " + b"x" * 99 + b"\n" + pdf(), COUNTS, ("APPENDED",)),
    World("after HTML", lambda: b"\xef\xbb\xbf \n<html><script>x</script>\n" + pdf(), "text/html"),
    World("after another document", lambda: page(TEXT) + page(TEXT), COUNTS, ("APPENDED",)),
    World("before an MP3", lambda: pdf() + tone(), COUNTS, ("APPENDED",)),
    World("before a ZIP", lambda: pdf() + zipped("a.txt", "anything"), COUNTS, ("APPENDED",)),
    World("a shell of a document", lambda: b"%PDF-1.7\nstartxref\n0\n%%EOF\n", DAMAGED),
    World("before 3,000 bytes of something", lambda: pdf() + chance(3000), COUNTS, ("APPENDED",)),
    World("before words", lambda: pdf() + b"o objeto do contrato " * 9, COUNTS, ("APPENDED",)),
    World("before the beginning of a later version", lambda: pdf() + b"4 0 obj\n<< >>", DAMAGED),
    World("before a line break too many", lambda: pdf() + b"\r\n\r\n", COUNTS),
    World("with a script", opening(b"/S /JavaScript /JS (x)"), COUNTS, ("JAVASCRIPT",)),
    World("with a script by name", lambda: page(
        TEXT, catalog=b"/Names << /JavaScript << /Names [(x) << /S /JavaScript /JS (x) >>] >> >>"
    ), COUNTS, ("JAVASCRIPT",)),
    World("that starts a program", opening(b"/S /Launch /F (cmd.exe)"), COUNTS, ("ACTION",)),
    World("that starts a program by a name of its own", lambda: page(
        TEXT, catalog=b"/OpenAction << /S 6 0 R /F (cmd.exe) >>", objects=(b"/Launch",)
    ), COUNTS, ("ACTION",)),
    World("that sends a form", opening(b"/S /SubmitForm /F (https://a.example)"), COUNTS, ("ACTION",)),
    World("with a script by a hexadecimal name", opening(b"/S /Java#53cript /J#53 (x)"), COUNTS, ("JAVASCRIPT",)),
    World("with a script by the mouse", pressing(b"/S /JavaScript /JS (x)"), COUNTS, ("JAVASCRIPT",)),
    World("that starts a program by the mouse", pressing(b"/S /Launch /F (cmd.exe)"), COUNTS, ("ACTION",)),
    World("that opens another file", opening(b"/S /GoToR /F (other.pdf)"), COUNTS, ("LINK",)),
    World("that jumps within itself", opening(b"/S /GoTo /D [3 0 R /Fit]"), COUNTS),
    World("with an attachment", lambda: page(
        TEXT, catalog=ATTACHED, objects=(b"<< /Type /EmbeddedFile /Length 1 >>\nstream\nx\nendstream",)
    ), COUNTS, ("ATTACHMENT",)),
    World("with a link", lambda: page(
        TEXT, page=b"/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 9 9] /A << /S /URI /URI (a:b) >> >>]"
    ), COUNTS, ("LINK",)),
)  # fmt: skip

WORLDS = (*RECORDINGS, *DOCUMENTS)


def said(found):
    if found.kind is FileKind.OTHER:
        return found.media_type, ()
    return found.problem or COUNTS, tuple(map(str, found.active_parts))


@pytest.mark.parametrize("world", WORLDS, ids=[each.name for each in WORLDS])
def test_what_is_said_of_a_file(world, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(world.make())
    assert said(inspect_file(path)) == (world.said, world.parts)


def test_one_file_says_nothing_about_the_next(tmp_path):
    """In a process of its own, in any order: a reader keeps nothing of the file before."""
    with Inspector() as inspector:
        for number, world in enumerate(random.Random(5).sample(WORLDS, 12)):
            path = tmp_path / str(number)
            path.write_bytes(world.make())
            with path.open("rb") as file:
                assert said(inspector.inspect(file)) == (world.said, world.parts), world.name
