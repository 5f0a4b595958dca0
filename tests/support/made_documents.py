"""PDFs of a few lines, made of bytes: what can be written on a page so that nothing is seen."""

import zlib

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
TEXT = b"BT /F1 12 Tf 72 700 Td (Contrato de energia) Tj ET"


def page(content, *, page=b"", box=b"0 0 595 842", catalog=b"", resources=b"", objects=()):
    """A PDF of one page; ``objects`` are numbered from 6, and the font is ``/F1``."""
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalog,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> %s >> %s >>" % (box, resources, page),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        HELVETICA,
        *objects,
    ]
    body, places = bytearray(b"%PDF-1.7\n"), []
    for number, part in enumerate(parts, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(parts) + 1
    body += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return bytes(body) + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        body.index(b"xref\n"),
    )


def picture(pixels, width, *, matrix=b"595 0 0 842 0 0", drawn=True, mask=None):
    """A page with a picture of grey pixels, seen through a mask where there is one."""
    packed = zlib.compress(pixels)
    image = (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
        b" /Filter /FlateDecode /Length %d %s >>\nstream\n%s\nendstream"
        % (width, len(pixels) // width, len(packed), b"/SMask 7 0 R" if mask else b"", packed)
    )
    return page(
        b"q %s cm /I Do Q" % matrix if drawn else b"% nothing",
        resources=b"/XObject << /I 6 0 R >> /ExtGState << /G << /ca 0 /CA 0 >> >>",
        objects=(image, mask) if mask else (image,),
    )
