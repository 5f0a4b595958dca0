"""Write the texts of notices, with numbers, codes and places, and without personal data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from toolkit.domain.jobs.outcomes import FAILURE_TEXTS, FailureCode

_ENGLISH: Final = {
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
_PORTUGUESE: Final = {
    "failed": "A tarefa {job}, prevista para {slot}, falhou",
    "missed": "A tarefa {job} não foi iniciada no horário previsto",
    "attention": "A tarefa {job}, prevista para {slot}, encontrou algo que requer atenção",
    "recovered": "A tarefa {job}, prevista para {slot}, foi concluída: tudo voltou ao normal",
    "reason": "Motivo: {reason} ({code})",
    "step": "Etapa: {step}",
    "slots": "Execuções perdidas: {number}, a última prevista para {slot}",
    "open": "Vendas em aberto: {open} de {sales}",
    "critical": "Achados críticos: {critical}, novos desde a última execução: {new}",
    "report": "Relatório: {folder} em {host}",
    "more": "Mais: toolkit job show {job}@{time}",
}
_PORTUGUESE_FAILURES: Final = {
    FailureCode.CELL_FAILED: "Uma célula do notebook falhou.",
    FailureCode.CELL_TIMED_OUT: "Uma célula do notebook passou do tempo permitido por cell-timeout.",
    FailureCode.COMMAND_FAILED: "Um comando não pôde fazer o seu trabalho.",
    FailureCode.BUCKET_REFUSED: "O bucket recusou um pedido.",
    FailureCode.BUCKET_UNAVAILABLE: "O bucket não respondeu.",
    FailureCode.DATABASE_REFUSED: "O banco de dados recusou uma instrução.",
    FailureCode.DATABASE_UNAVAILABLE: "O banco de dados não respondeu.",
    FailureCode.DISK_FULL: "O disco está cheio.",
    FailureCode.KERNEL_DIED: "O kernel do notebook morreu.",
    FailureCode.KERNEL_OUT_OF_MEMORY: "O kernel do notebook ficou sem memória.",
    FailureCode.LEASE_LOST: "Outra partida assumiu a execução, porque não havia notícias desta.",
    FailureCode.NOTHING_EVALUATED: "Não havia venda para avaliar.",
    FailureCode.RUNNER_DIED: "O processo que executava a tarefa terminou sem aviso.",
    FailureCode.SERVICE_UNAVAILABLE: "Um serviço não respondeu.",
    FailureCode.STOPPED: "A execução foi interrompida por um sinal.",
    FailureCode.TIMED_OUT: "A execução passou do tempo permitido.",
    FailureCode.UNEXPECTED: "Ocorreu um erro que o toolkit não conhece.",
    FailureCode.WRONG_SETTINGS: "Uma configuração, um parâmetro ou um notebook está errado.",
}


@dataclass(frozen=True, slots=True)
class NoticeText:
    """A notice in words."""

    subject: str
    body: str


def notice_text(
    job: str, slot: datetime, kind: str, content: Mapping[str, Any], language: str, zone: ZoneInfo
) -> NoticeText:
    """Return the text of a notice: in Portuguese where ``language`` begins with ``pt``, else in English."""
    portuguese = language.lower().startswith("pt")
    words = _PORTUGUESE if portuguese else _ENGLISH
    due = slot.astimezone(zone)
    written = f"{due:%d/%m/%Y %H:%M}" if portuguese else f"{due:%Y-%m-%d %H:%M}"
    values = {**content, "job": job, "slot": written, "time": due.isoformat(timespec="minutes")}
    subject = words[kind].format(**values)
    lines = [f"{subject}."]
    if "code" in content:
        code = FailureCode(content["code"])
        reason = _PORTUGUESE_FAILURES[code] if portuguese else FAILURE_TEXTS[code]
        lines.append(words["reason"].format(reason=reason, code=code))
    if content.get("step"):
        lines.append(words["step"].format(step=content["step"]))
    if "slots" in content:
        lines.append(words["slots"].format(number=len(content["slots"]), slot=written))
    lines += [words[part].format(**values) for part in ("open", "critical") if part in content]
    if content.get("folder"):
        lines.append(words["report"].format(**values))
    lines.append(words["more"].format(**values))
    return NoticeText(subject, "\n".join(lines) + "\n")
