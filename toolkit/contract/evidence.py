"""Evidence: its types, their file kinds, the upload request, and the key of its object."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from toolkit.contract.fields import NotBlank, RequestModel, RequiredText, invalid, required_text
from toolkit.message import LabelledEnum


class FileKind(StrEnum):
    """The kind of a file, judged by its declared type or by its bytes."""

    AUDIO = "audio"
    PDF = "pdf"
    OTHER = "other"


class EvidenceType(LabelledEnum):
    """The contract's evidence types, in the order of its table."""

    POV = "POV", "Audio of the contracting party"
    AUT = "AUT", "Audio of the financially responsible person"
    DOC_CONTRATANTE = "DOC_CONTRATANTE", "Document of the contracting party"
    DOC_RESPONSAVEL_FINANCEIRO = "DOC_RESPONSAVEL_FINANCEIRO", "Document of the financially responsible person"
    DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO = (
        "DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO",
        "Single document covering both",
    )
    KYC = "KYC", "Know Your Customer, facial biometrics"


class UtilityGroup(StrEnum):
    """The four utility groups that the contract lists."""

    A = "A"
    B = "B"
    C = "C"
    D = "D"


KIND_OF: Final[Mapping[str, FileKind]] = {
    EvidenceType.POV: FileKind.AUDIO,
    EvidenceType.AUT: FileKind.AUDIO,
    EvidenceType.DOC_CONTRATANTE: FileKind.PDF,
    EvidenceType.DOC_RESPONSAVEL_FINANCEIRO: FileKind.PDF,
    EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO: FileKind.PDF,
    EvidenceType.KYC: FileKind.PDF,
}
"""The kind of file that each type demands (contract, "Allowed evidenceType values"); no other type has one."""

SALE_ID_MAX: Final = 100  # characters in a sale id; the contract leaves its form open
FILE_NAME_MAX_BYTES: Final = 255  # in UTF-8: what file systems hold, and far below the 1,024 of an S3 key
KEY_PREFIX: Final = "evidences/"

_AUDIO_TYPE = re.compile(r"audio/[a-z0-9][a-z0-9!#$&^_.+-]*")
_NO_FILE_NAME = re.compile("[/\\\\\ufffe\uffff]|\\$\\{")


def kind_of_media_type(media_type: str) -> FileKind:
    """Return the file kind that a media type such as ``audio/mpeg`` stands for."""
    lowered = media_type.lower()
    if lowered == "application/pdf":
        return FileKind.PDF
    return FileKind.AUDIO if _AUDIO_TYPE.fullmatch(lowered) else FileKind.OTHER


def _check_file_name(value: Any) -> str:
    name = required_text(value)
    if _NO_FILE_NAME.search(name) or name in {".", ".."}:
        raise invalid("Must be a plain file name, without path, ${ or text-direction characters")
    if len(name.encode()) > FILE_NAME_MAX_BYTES:
        raise invalid("Must have at most {} bytes in UTF-8", FILE_NAME_MAX_BYTES)
    return name


FileName = Annotated[
    str,
    BeforeValidator(_check_file_name),
    Field(
        description=f"A plain name: no path, no control or text-direction characters, no ${{, at most "
        f"{FILE_NAME_MAX_BYTES} bytes."
    ),
]


class EvidenceRequest(RequestModel):
    """The caller's description of the file to be uploaded (contract, "Evidence upload request").

    ``fileFormat`` and ``type`` must both be of the kind that ``evidenceType`` demands; they need not be equal.
    """

    evidence_type: Annotated[EvidenceType, NotBlank]
    file_name: FileName
    file_format: RequiredText
    type: RequiredText

    @field_validator("file_format", "type", mode="after")
    @classmethod
    def _fits_evidence_type(cls, media_type: str, info: ValidationInfo) -> str:
        evidence_type = info.data.get("evidence_type", "")
        wanted = KIND_OF.get(evidence_type)
        if wanted not in (None, kind_of_media_type(media_type)):
            raise invalid(
                "Must be application/pdf for {}"
                if wanted is FileKind.PDF
                else "Must be an audio type such as audio/mpeg for {}",
                evidence_type,
            )
        return media_type


def object_key(evidence_id: UUID, file_name: str, requested_at: datetime) -> str:
    """Return the key of an evidence record's file in the bucket.

    ``evidences/YYYY/MM/DD/<evidence id>/<file name>``, by the day (UTC) on which it was requested: a listing
    of the days since the last one finds all that can be new. The sale is not named, because sale ids are
    free text that belongs to another system.
    """
    return f"{KEY_PREFIX}{requested_at.astimezone(UTC):%Y/%m/%d}/{evidence_id}/{file_name}"


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An evidence record that counts no longer, and the two people who decided it."""

    evidence_id: UUID
    sale_id: str
    reason: str
    withdrawn_by: str
    approved_by: str
    withdrawn_at: datetime
