"""Evidence files of every kind, sound and not, made here and by the libraries that verify them."""

import io
import struct
import zipfile
import zlib
from importlib.resources import files

import av
import numpy as np
from pypdf import PdfWriter

TEXT = b"BT /F1 12 Tf 72 700 Td (Contrato de energia) Tj ET"


def page(content, *, packed=b"", page=b"", box=b"0 0 595 842", catalog=b"", resources=b"", objects=()):
    """A PDF of one page; ``objects`` are numbered from 6, and the font is ``/F1``."""
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> %s >> %s >>" % (box, resources, page),
        b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), packed, content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *objects,
    ]
    body, places = bytearray(b"%PDF-1.7\n"), []
    for number, part in enumerate(parts, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(parts) + 1, len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return bytes(body) + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


def picture(pixels, width, *, mask=None):
    """A page with a picture of grey pixels, seen through a mask where there is one."""
    packed = zlib.compress(pixels)
    image = (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
        b" /Filter /FlateDecode /Length %d %s >>\nstream\n%s\nendstream"
        % (width, len(pixels) // width, len(packed), b"/SMask 7 0 R" if mask else b"", packed)
    )
    objects = (image, mask) if mask else (image,)
    return page(b"q 595 0 0 842 0 0 cm /I Do Q", resources=b"/XObject << /I 6 0 R >>", objects=objects)


RATE = 16_000


def pdf(pages=1, password=None, *, operators=b"BT /F1 11 Tf 72 700 Td (Contrato) Tj ET"):
    writer = PdfWriter()
    for _ in range(pages):
        writer.append(io.BytesIO(page(operators)))
    if password is not None:
        writer.encrypt(password, algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


CODECS = {
    "MP3": ("mp3", "libmp3lame", RATE),
    "WAV": ("wav", "pcm_s16le", RATE),
    "FLOAT": ("wav", "pcm_f32le", RATE),
    "ULAW": ("wav", "pcm_mulaw", 8000),
    "ALAW": ("wav", "pcm_alaw", 8000),
    "ADPCM": ("wav", "adpcm_ima_wav", 8000),
    "G722": ("wav", "g722", RATE),
    "G726": ("wav", "g726", 8000),
    "FLAC": ("flac", "flac", RATE),
    "OGG": ("ogg", "libopus", 48000),
    "AIFF": ("aiff", "pcm_s16be", RATE),
    "AU": ("au", "pcm_s16be", RATE),
    "CAF": ("caf", "pcm_s16be", RATE),
    "M4A": ("ipod", "aac", RATE),
    "AAC": ("adts", "aac", RATE),
    "AMR": ("amr", "libopencore_amrnb", 8000),
    "3GP": ("3gp", "libopencore_amrnb", 8000),
    "WEBM": ("webm", "libopus", 48000),
    "MKA": ("matroska", "ac3", 48000),
    "WMA": ("asf", "wmav2", 44100),
    "MOV": ("mov", "pcm_s16le", RATE),
}
"""FFmpeg's container, codec and samples a second of each kind of recording."""


def encoded(samples, container="MP3", rate=None, tracks=1, layout=None, **options):
    """A recording of samples from -1 to 1; a second dimension holds channels.

    They are in the last of its tracks; the others are silent and shorter.
    """
    muxer, codec, usual = CODECS[container]
    rows = samples.reshape(len(samples), -1).T.astype(np.float32)
    layout = layout or ("mono" if len(rows) == 1 else "stereo")
    buffer = io.BytesIO()
    with av.open(buffer, "w", muxer, options) as out:
        streams = [out.add_stream(codec, rate=rate or usual, layout=layout) for _ in range(tracks)]
        for stream in streams:
            if container == "WMA":
                stream.bit_rate = 64_000
            heard = rows if stream is streams[-1] else rows[:, : len(samples) // 2] * 0
            frame = av.AudioFrame.from_ndarray(heard.T.reshape(1, -1), "flt", layout)
            frame.sample_rate, frame.pts = rate or usual, 0
            for each in (frame, None):
                out.mux(stream.encode(each))
    return buffer.getvalue()


def moments(seconds, container="MP3"):
    """The seconds of each sample."""
    rate = CODECS[container][2]
    return np.arange(int(seconds * rate)) / rate


def tone(seconds=2.0, container="MP3", *, loudness=0.3):
    return encoded(loudness * np.sin(2 * np.pi * 440 * moments(seconds, container)), container)


def spoken(rate=RATE, number=1):
    """The samples of a voice that speaks for four to five seconds; ``number`` (1 to 3) tells two apart."""
    resampler = av.AudioResampler("flt", "mono", rate)
    with av.open(str(files("toolkit.samples") / "recordings" / f"pov-{number}.mp3")) as recording:
        heard = [part.to_ndarray()[0] for each in recording.decode(audio=0) for part in resampler.resample(each)]
    return np.concatenate(heard)


def voice(container="MP3", number=1):
    return encoded(spoken(CODECS[container][2], number), container)


def video(container, picture, sound):
    """Two seconds of a grey picture and a tone."""
    buffer, rate = io.BytesIO(), 48000
    with av.open(buffer, "w", container) as out:
        seen = out.add_stream(picture, rate=5, width=64, height=64, pix_fmt="yuv420p")
        heard = out.add_stream(sound, rate=rate, layout="mono")
        tone = np.float32(0.3) * np.sin(np.arange(2 * rate, dtype=np.float32) / 17)[None]
        frame = av.AudioFrame.from_ndarray(tone, "fltp", "mono")
        frame.sample_rate, frame.pts = rate, 0
        for _ in range(10):
            out.mux(seen.encode(av.VideoFrame(64, 64, "yuv420p")))
        for stream, last in ((seen, None), (heard, frame), (heard, None)):
            out.mux(stream.encode(last))
    return buffer.getvalue()


def overwritten(content, fill=bytes):
    """The same with zeros, or what ``fill`` gives, in its middle third."""
    third = len(content) // 3
    return content[:third] + fill(third) + content[2 * third :]


def silence(seconds=2.0, container="MP3"):
    return tone(seconds, container, loudness=0.0)


def telephone_wav(seconds=2.0, *, codec=0x83):
    """A WAV file of zeros in a codec, which is G.729 of telephone recorders."""
    data = bytes(int(seconds * 1000))
    fmt = struct.pack("<HHIIHHH", codec, 1, 8000, 1000, 10, 0, 0)
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def zipped(name, content):
    """An archive with one part."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(200)
