"""The colours that statuses and reasons have everywhere; ``templates/page.css`` has darker ones beside them."""

from collections.abc import Mapping
from typing import Final

from toolkit.domain.findings import Reason, Status

COLOURS: Final[Mapping[str, str]] = {
    Status.COMPLIANT: "#b7cdc4",
    Status.INCOMPLETE: "#e09a2d",
    Status.CONFLICT: "#a52f45",
    Reason.UNUSABLE: "#7d4a97",
    Reason.VANISHED: "#b85a7f",
    Reason.NOT_UPLOADED: "#9cc3dd",
    Reason.EXPIRY_UNKNOWN: "#75a9cb",
    Reason.EXPIRED: "#4f8fb9",
    Reason.NEVER_REQUESTED: "#1c4e74",
}
"""The colour of each code."""

STATUS_INK: Final[Mapping[str, str]] = {Status.INCOMPLETE: "#7a4a00", Status.CONFLICT: "#8c1f37"}
