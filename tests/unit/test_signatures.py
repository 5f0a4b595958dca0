"""The type of a file follows from its first bytes."""

import pytest

from toolkit.evidence.kinds import media_type_of_bytes

MP3_FRAME = bytes.fromhex("fffb9064") + bytes(413)
"""One frame of MPEG-1 layer III at 128 kbit/s and 44.1 kHz: 417 bytes."""

ADTS_FRAME = bytes.fromhex("fff15080") + (16 << 5 & 0xFFFF).to_bytes(2, "big") + bytes(10)


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (b"\n" * 1019 + b"%PDF-1.4", "application/pdf"),
        (b"\n" * 1020 + b"%PDF-1.4", "application/octet-stream"),
        (b"ID3\x04\x00\x00\x00\x00\x00\x00", "audio/mpeg"),
        (MP3_FRAME * 2, "audio/mpeg"),
        (MP3_FRAME, "audio/mpeg"),
        (ADTS_FRAME * 2, "audio/aac"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
        (b"RIFF\x24\x00\x00\x00AVI LIST", "video/x-msvideo"),
        (b"FORM\x00\x00\x00\x24AIFFCOMM", "audio/aiff"),
        (b"OggS" + bytes(24) + b"OpusHead", "audio/ogg"),
        (b"OggS" + bytes(24) + b"\x80theora", "application/ogg"),
        (b"fLaC\x00\x00\x00\x22", "audio/flac"),
        (b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00", "audio/mp4"),
        (b"\x00\x00\x00\x20ftyp3gp4\x00\x00\x00\x00", "audio/mp4"),
        (b"\x00\x00\x00\x20ftypheic\x00\x00\x00\x00", "application/octet-stream"),
        (b"#!AMR\n\x3c", "audio/amr"),
        (b"#!AMR-WB\n\x3c", "audio/amr-wb"),
        (b"\x1a\x45\xdf\xa3webm\x86\x86A_OPUS", "audio/webm"),
        (b"\x1a\x45\xdf\xa3webm\x86\x86A_OPUS\x86\x85V_VP9", "video/webm"),
        (b"\xff\xd8\xff\xe1 %PDF-1.7", "image/jpeg"),
        (b"PK\x03\x04", "application/zip"),
        ("Sehr geehrte".encode("utf-16"), "application/octet-stream"),
        (b"plain text", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_first_bytes_tell_the_media_type(head, media_type):
    assert media_type_of_bytes(head) == media_type
