"""Evidence files of every kind, sound and not, made here and by the libraries that verify them."""

from __future__ import annotations

import io
import struct

import numpy as np
import soundfile
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject

RATE = 16_000


def pdf(pages: int = 1, password: str | None = None, *, operators: bytes = b"BT (Contrato) Tj ET") -> bytes:
    writer = PdfWriter()
    contents = DecodedStreamObject()
    contents.set_data(operators)
    for _ in range(pages):
        writer.add_blank_page(width=595, height=842)[NameObject("/Contents")] = writer._add_object(contents)
    if password is not None:
        writer.encrypt(password, algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def tone(
    seconds: float = 2.0, container: str = "MP3", *, loudness: float = 0.3, subtype: str | None = None
) -> bytes:
    moments = np.arange(int(seconds * RATE)) / RATE
    buffer = io.BytesIO()
    soundfile.write(buffer, loudness * np.sin(2 * np.pi * 440 * moments), RATE, format=container, subtype=subtype)
    return buffer.getvalue()


def overwritten(content: bytes) -> bytes:
    """The same with zeros in its middle third."""
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


def silence(seconds: float = 2.0, container: str = "MP3") -> bytes:
    return tone(seconds, container, loudness=0.0)


def amr(seconds: float = 2.0) -> bytes:
    return b"#!AMR\n" + (b"\x3c" + bytes(31)) * int(seconds * 50)


def adts(seconds: float = 2.0) -> bytes:
    length = 100
    header = bytes([0xFF, 0xF1, 0x60, 0x40 | length >> 11, length >> 3 & 0xFF, (length & 7) << 5 | 0x1F, 0xFC])
    return (header + bytes(length - len(header))) * int(seconds * 16_000 / 1024 + 1)


def mp4(seconds: float = 2.0, handler: bytes = b"soun", *, bytes_of_sound: int = 500) -> bytes:
    def box(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content) + 8) + name + content

    mvhd = box(b"mvhd", bytes(12) + struct.pack(">II", 1000, int(seconds * 1000)) + bytes(80))
    track = box(b"trak", box(b"mdia", box(b"hdlr", bytes(8) + handler + bytes(13))))
    return box(b"ftyp", b"M4A \0\0\0\0") + box(b"moov", mvhd + track) + box(b"mdat", bytes(bytes_of_sound))


def telephone_wav(seconds: float = 2.0, *, a_second: int = 1000) -> bytes:
    """A WAV file with the codec G.729, which nothing here decodes."""
    data = bytes(int(seconds * 1000))
    fmt = struct.pack("<HHIIHHH", 0x83, 1, 8000, a_second, 10, 0, 0)
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(200)
