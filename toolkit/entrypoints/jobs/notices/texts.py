"""Write the texts of notices, with numbers, codes and places, and without personal data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.outcomes import FailureCode
from toolkit.language import ENGLISH
from toolkit.language import language as language_of

SENTENCES: Final = {
    "failed": "Job {job}, due {slot}, failed",
    "missed": "Job {job} was not started when it was due",
    "attention": "Job {job}, due {slot}, found something that needs attention",
    "recovered": "Job {job}, due {slot}, is done: all is well again",
    "reason": "Reason: {reason} ({code})",
    "step": "Step: {step}",
    "slots": "Missed: {number}, the last one due {slot}",
    "open": "Open sales: {open} of {sales}",
    "critical": "Critical findings: {critical}, new since the last run: {new}",
    "report": "Report: {folder} on {host}",
    "more": "More: toolkit job show {job}@{time}",
}
"""The sentences of a notice; their translations are in ``toolkit/language``."""


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A notice in words."""

    subject: str
    body: str


def notice_text(
    job: str, slot: datetime, kind: str, content: Mapping[str, Any], language: str, zone: ZoneInfo
) -> NoticeText:
    """Return the text of a notice: in Portuguese where ``language`` begins with ``pt``, else in English."""
    spoken = language_of("pt-BR") if language.lower().startswith("pt") else ENGLISH
    words = {name: spoken.text(sentence) for name, sentence in SENTENCES.items()}
    due = slot.astimezone(zone)
    written = f"{due:%d/%m/%Y %H:%M}" if spoken is not ENGLISH else f"{due:%Y-%m-%d %H:%M}"
    values = {**content, "job": job, "slot": written, "time": due.isoformat(timespec="minutes")}
    subject = words[kind].format(**values)
    lines = [f"{subject}."]
    if "code" in content:
        code = FailureCode(content["code"])
        lines.append(words["reason"].format(reason=spoken.text(code.text), code=code))
    if content.get("step"):
        lines.append(words["step"].format(step=content["step"]))
    if "slots" in content:
        lines.append(words["slots"].format(number=len(content["slots"]), slot=written))
    lines += [words[part].format(**values) for part in ("open", "critical") if part in content]
    if content.get("folder"):
        lines.append(words["report"].format(**values))
    lines.append(words["more"].format(**values))
    return NoticeText(subject, "\n".join(lines) + "\n")
