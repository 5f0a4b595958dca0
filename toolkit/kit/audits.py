"""One audit as analysts ask it: DataFrames, SQL, what changed, and the report; and what is shown of findings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
from sqlalchemy import Row

from toolkit.audit.changes import BETWEEN, KINDS, FindingChanges, changes_between
from toolkit.audit.folder import Audit
from toolkit.audit.folder import open_audit as open_folder
from toolkit.contract.codes import CODES, Owner
from toolkit.contract.fields import pick_camel
from toolkit.contract.findings import FindingStatus
from toolkit.contract.waivers import Waiver
from toolkit.errors import InvalidInput, LogDiffers, LogKeyMissing
from toolkit.kit.process import operation
from toolkit.kit.results import of_rejected, unread
from toolkit.kit.shown import IN_A_NOTEBOOK, Part, Shown, bundle, figures, links, remark, say, table, text_of
from toolkit.kit.spoken import _, counted, current_language, current_zone, readable
from toolkit.language import default_language
from toolkit.language import language as language_of
from toolkit.message import Message
from toolkit.progress import Progress
from toolkit.reports import chosen, write_report
from toolkit.reports.audited import ENDS_SOON, Audited
from toolkit.reports.json_document import encoder, finding_records, records, summary, waiver_as_json
from toolkit.reports.lists import BESIDE, PROBLEMS, TO_ACT_ON, section
from toolkit.reports.notices import headline, notices
from toolkit.reports.page import charts
from toolkit.reports.reading import read_audited
from toolkit.reports.report import DEFAULT_FORMATS, List, Report, partner_folder, tuples
from toolkit.settings import expanded

if TYPE_CHECKING:
    from toolkit.audit.object_history import Synced
    from toolkit.audit.partners import AnswersLoaded
    from toolkit.kit.services import Services


class AuditResult:
    """One audit: its tables as DataFrames, and what can be asked of it. It shows itself in a notebook.

    Columns have Arrow types; times carry an offset; lists in a cell are joined by ``|``. CPFs are masked.

    Attributes:
        audit: the audit folder.
        folder: where it is: a path, or an address in a bucket.
        as_of: the moment that it is of.
    """

    def __init__(
        self,
        audit: Audit,
        kit: Services | None = None,
        synced: Synced | None = None,
        unsealed: LogKeyMissing | LogDiffers | None = None,
    ) -> None:
        self.audit, self._kit, self._synced, self._unsealed = audit, kit, synced, unsealed
        self.folder, self.as_of = audit.folder, audit.facts.as_of
        self.environ = kit.environ if kit is not None else os.environ
        self._zone = ZoneInfo(audit.facts.timezone) if kit is None else kit.settings.timezone

    @property
    def verdicts(self) -> pd.DataFrame:
        """One row a sale, the gravest first.

        ``sale_id``, ``utility_group``, ``status``, ``missing``, ``reasons``, ``problems``, ``partner``,
        ``created_at``, ``completed_at``, and counts of its files.
        """
        return self.sql("FROM verdicts")

    @property
    def missing(self) -> pd.DataFrame:
        """One row a missing piece: ``sale_id``, ``evidence_type``, the ``reason``, ``partner``."""
        return self.sql("FROM missing")

    @property
    def findings(self) -> pd.DataFrame:
        """One row a finding, resolved ones last.

        ``id``, ``sale_id``, ``code``, ``status``, ``first_seen``, ``last_seen``, ``due_at``, ``owner`` and more.
        """
        return self.sql("FROM findings")

    @property
    def files(self) -> pd.DataFrame:
        """One row an evidence record: its file's size (bytes), ``seconds``, ``pages``, ``fault`` and coverage."""
        return self.sql("FROM files")

    def sql(self, query: str, *parameters: object) -> pd.DataFrame:
        """Return the rows of a query in DuckDB's SQL, in which each table of the audit is a view.

        Moments and days are those of the settings' time zone, as in reports.

        Args:
            query: the statement; ``?`` stands for a value.
            parameters: the values.

        Raises:
            InvalidInput: what DuckDB says of the query.
        """
        try:
            rows = self.audit.sql(query, *parameters, zone=str(self._zone))
        except duckdb.Error as error:
            raise InvalidInput("The query cannot be answered. {}", str(error).partition("\n")[0]) from None
        found: pd.DataFrame = rows.to_pandas(types_mapper=pd.ArrowDtype)
        return found

    def changes(self, since: str | datetime) -> Shown[FindingChanges]:
        """Compare its findings with those of an earlier moment.

        Raises:
            InvalidInput: ``since`` is no moment before it, or it was opened without a database.
            NothingEvaluated: no audit had been made by its moment.
        """
        if self._kit is None:
            raise InvalidInput(
                "What changed stands in the database: open the audit by toolkit.connect().open_audit({!r}).",
                self.folder,
            )
        moments = self._kit.moment(since), self.as_of
        return shown_changes(changes_between(self._kit.database, *moments, self._zone))

    @operation
    def report(
        self,
        out: str | Path = "reports",
        *,
        formats: str | Iterable[str] = DEFAULT_FORMATS,
        language: str | None = None,
        csv: str = "programs",
        partner: str | None = None,
        per_partner: bool = False,
        since: str | datetime | None = None,
        unmask: str | None = None,
    ) -> Shown[list[Path]]:
        """Write the report for people into a folder; an earlier report there is moved to ``history/`` beneath it.

        Args:
            out: the folder.
            formats: any of html, xlsx, csv, json, pdf: names, or one text with commas.
            language: that of the formats for people: pt-BR or en; by default that of the environment.
            csv: ``programs`` (comma, UTF-8) or ``excel`` (as a Brazilian Excel opens it).
            partner: only the sales of this partner.
            per_partner: also one report for each partner, under ``partners/``.
            since: compare with the audits of this moment instead of the audit before.
            unmask: the reason for showing whole CPFs, which the custody log then tells with the account.

        Returns:
            The paths of the files.

        Raises:
            InvalidInput: an unknown format, language, partner or moment.
            ReportError: the files cannot be written; the earlier report is still there.
        """
        if not str(out).strip():
            raise InvalidInput("out must name the folder for the report.")
        if csv not in {"programs", "excel"}:
            raise InvalidInput("A CSV is for programs or excel, not for {!r}.", csv)
        wanted = chosen(formats.split(",") if isinstance(formats, str) else formats)
        spoken = language_of(language) if language else default_language(self.environ)
        kit, place = self._kit, expanded(out) if self._kit is None else self._kit.path(out)
        cpfs = None
        if unmask is not None:
            if kit is None:
                raise InvalidInput("Whole CPFs stand in the database: open the audit by toolkit.connect().")
            kit.unmask(unmask, "CPFs of an audit")
            cpfs = kit.cpfs(self.audit.sql("SELECT client_id FROM clients")["client_id"].to_pylist())
        changes = None if since is None else self.changes(since).result

        def compared(found: Audited) -> Audited:
            return found if changes is None else found.since(changes)

        result = compared(self.numbers if partner is None and cpfs is None else self.read(partner, cpfs))
        report = Report(result, self._zone, wanted, spoken, csv == "excel")
        write = partial(write_report, witness=None if kit is None else kit.record_report)
        progress = Progress() if kit is None else kit.progress
        written = write(report, place, progress=progress)
        if per_partner:
            names = self.audit.partners if partner is None else [partner]
            progress.begin("Writing a report for each partner", len(names), "partners")
            for name, own in zip(names, self.audit.each_partner(names), strict=True):
                theirs = replace(report, result=compared(read_audited(own, cpfs=cpfs)))
                written += write(theirs, place / "partners" / partner_folder(name))
                progress.advance(1)
            progress.end()
        report = self._report(result)
        parts = [say(f"{headline(report)}.", aside=True), *_notes(report)]
        numbers = pick_camel(result, "sales", "compliant", "incomplete", "conflict")
        listed = replace(links("The report", written), text="\n".join(map(str, written)))
        return Shown(written, [listed, *parts], numbers, result.open > 0)

    def read(self, partner: str | None = None, cpfs: Mapping[str, str] | None = None) -> Audited:
        """Return the numbers and lists of the report, or of one partner's sales, all of them read now.

        Those of a partner are without what is compliance's own.

        Raises:
            InvalidInput: no sale names this partner.
        """
        own = self.audit if partner is None else self.audit.for_partner(partner)
        return read_audited(replace(own, threads=1), cpfs=cpfs)  # the memory of its queries goes with it

    @cached_property
    def numbers(self) -> Audited:
        """The numbers and lists of its report."""
        return self.read()

    @property
    def document(self) -> dict[str, Any]:
        """The document of ``toolkit audit --json``."""
        written = encoder(self._zone).encode(summary(self.numbers) | {"folder": self.folder})
        document: dict[str, Any] = json.loads(written)
        return document

    @property
    def needs_attention(self) -> bool:
        """True where a sale is not compliant, the service is read otherwise, or the custody log was changed."""
        log_differs = isinstance(self._unsealed, LogDiffers)
        return self.numbers.open > 0 or self.numbers.service_is_odd or log_differs

    @property
    def parts(self) -> list[Part]:
        """The totals: the answer, what weakens it, and tables."""
        result, report = self.numbers, self._report(self.numbers)
        parts = [say(self._as_of), say(f"{headline(report)}.")]
        parts += unread(self._synced)
        parts += [] if self._unsealed is None else [remark("note", self._unsealed.message)]
        parts += _notes(report)
        for chart in charts(report):
            rows = [[bar["name"], *(each["count"] for each in bar["segments"])] for bar in chart["bars"]]
            if any(any(counts) for _name, *counts in rows):
                parts.append(table(chart["title"], [chart["heading"], *chart["columns"].values()], rows))
        parts += [self._list(PROBLEMS)] if (result.problems["sales"] > 0).any() else []
        return [*parts, say(f"\n{_('Folder of the audit')} {self.folder}")]

    def partners(self) -> Shown[pd.DataFrame]:
        """Show what each partner has to act on, those with the most overdue findings first."""
        board = self.numbers.partners
        overdue, named = int(board["overdue"].sum()), board["partner"] != ""
        facts = {"partners": int(named.sum()), "findings": int(board["findings"].sum()), "overdue": overdue}
        parts = [figures("Partners", facts, self._as_of)]
        parts += [self._list(BESIDE[name]) for name in ("partners", "partner-months")]
        parts += _notes(self._report(self.numbers))
        return Shown(board, parts, facts, overdue > 0)

    def listed_findings(self, *, status: str | None = None) -> Shown[pd.DataFrame]:
        """Show each finding with its status, deadline and owner, those to act on first.

        Raises:
            InvalidInput: no finding can have this status.
        """
        if status is not None and status not in {*FindingStatus}:
            raise InvalidInput("A status is one of {}, not {!r}.", ", ".join(FindingStatus), status)
        result, resolved = self.numbers, status == FindingStatus.RESOLVED
        found = result.findings if status is None else result.findings[result.findings["status"] == status]
        active = found["status"].isin((FindingStatus.OPEN, FindingStatus.REOPENED))
        listed = found[active] if status is None else found
        rows = []
        for row in tuples(listed.head(IN_A_NOTEBOOK)):
            what = row.id, _(row.severity), _(row.status), row.code, row.saleId or _("no sale")
            due, left = due_of(row, self._zone)
            owner = _(row.owner) if row.owner in [*Owner] else row.owner
            rows.append((*what, row.lastSeen if resolved else due, left, owner))
        counts = found["status"].value_counts().items()
        facts = {str(name): int(count) for name, count in counts if count or not status}
        parts = _notes(self._report(result))
        parts.append(figures("Findings", facts | {"overdue": int(found["overdue"].sum())}))
        when = _("last seen") if resolved else _("deadline")
        columns = ["id", "severity", "status", "code", "sale", when, "business days left", "owner"]
        parts.append(table("Open findings" if status is None else "Findings", columns, rows, total=len(listed)))
        document = {
            "asOf": self.as_of,
            "counts": result.finding_counts,
            "findings": finding_records(found, self._zone),
        }
        return Shown(found, parts, document, bool(active.any()))

    def file_findings(self) -> Shown[list[dict[str, Any]]]:
        """Show what it found about the files themselves, the gravest first, without their names."""
        found, columns = self.numbers.file_findings, ("Sales", "Code", "Meaning", "Where the files lie")
        listed = self._list(replace(BESIDE["file-findings"], columns=dict.fromkeys(columns, 1.0)))
        document = [{"text": CODES[each["problem"]].meaning} | each for each in found]
        return Shown(found, [say(self._as_of), listed], {"asOf": self.as_of, "findings": document}, bool(found))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        parts, result = self.parts, self.numbers
        if result.open:
            shown = {name: share for name, share in TO_ACT_ON.columns.items() if name != "CPF"}
            parts.append(self._list(replace(TO_ACT_ON, columns=shown)))
        return bundle(parts, self.document, needs_attention=self.needs_attention)

    def __repr__(self) -> str:
        return text_of(self.parts)

    @property
    def _as_of(self) -> str:
        return f"{_('As of')} {current_language().moment(self.as_of, self._zone)}"

    def _report(self, result: Audited) -> Report:
        return Report(result, self._zone, language=current_language())

    def _list(self, of: List) -> Part:
        found = section(of, self._report(self.numbers))
        return table(found.title, [*found.columns], found.rows(IN_A_NOTEBOOK), total=found.total)


def open_audit(folder: str | Path) -> AuditResult:
    """Open the audit in a folder, without any database or bucket.

    Its reports are not recorded in the custody log; ``connect().open_audit()`` opens one that does, also in a
    bucket.

    Args:
        folder: its path, such as ``audits/2026-11-01T02-00-00Z``.

    Raises:
        UnreadableFile: there is no audit, or a file of it is not what was written.
    """
    return AuditResult(open_folder(folder).verify())


def _notes(report: Report) -> list[Part]:
    return [remark("note", text) for text in notices(report)]


def due_of(row: Any, zone: ZoneInfo) -> tuple[date | None, int | None]:
    """Return the day on which a finding is due, and the business days left; nothing where it is resolved."""
    if row.status == FindingStatus.RESOLVED:
        return None, None
    return row.dueAt.astimezone(zone).date(), row.dueInBusinessDays


def shown_changes(found: FindingChanges) -> Shown[FindingChanges]:
    """Show what happened to findings between two moments."""
    start, by_day = readable(found.start), found.by_day
    facts = {
        "new": len(found.ids("new")),
        "reopened": len(found.ids("reopened")),
        "resolved": len(found.ids("resolved")),
        "still open": len(found.ids("open")),
        "came and went": len(found.ids(BETWEEN)),
    }
    parts = [figures(Message("Findings from {} to {}", start, readable(found.end)), facts)]
    if found.first:
        parts.append(remark("note", "no audit had been made by {}, so that every finding counts as new", start))
    if gone := len(found.without_sale):
        note = Message(
            "{} of the resolved findings ended because their sale is gone: toolkit explain SALE_GONE", gone
        )
        parts.append(remark("note", note))
    recent = by_day[by_day["day"] > found.end.astimezone(current_zone()).date() - timedelta(days=14)]
    parts.append(table("The last two weeks", ["day", "findings", "came", "went"], tuples(recent)))
    rows = []
    for kind in ("new", "reopened", "resolved"):
        changed = found.findings[found.findings["change"] == kind]
        since = "closed_at" if kind == "resolved" else "opened_at"
        for row in tuples(changed.sort_values([since, "sale_id", "code"]).head(IN_A_NOTEBOOK)):
            sale, partner = row.sale_id or _("no sale"), row.partner or _("no partner")
            rows.append((_(kind), sale, row.code, partner, getattr(row, since)))
    parts.append(table("Changes", ["change", "sale", "code", "partner", "since"], rows))
    attention = bool(found.ids("new") or found.ids("reopened"))
    document = {"from": found.start, "to": found.end, **{kind: found.ids(kind) for kind in KINDS}}
    document |= {"saleGone": found.without_sale, "trend": records(by_day)}
    return Shown(found, parts, document, attention)


def shown_waivers(waivers: Sequence[Waiver], today: date) -> Shown[Sequence[Waiver]]:
    """Show waivers with their state on a day, and which of them end soon."""
    columns = ["id", "state", "start", "end", "about", "reason", "owner", "approved by"]
    rows = []
    for each in waivers:
        about = {"sale": each.sale_id, "partner": each.partner, "code": each.code}
        subject = ", ".join(f"{_(name)} {value}" for name, value in about.items() if value)
        held = each.id, _(each.state(today)), each.start, each.end
        rows.append((*held, subject, each.reason, each.owner, each.approved_by))
    parts = [table("Waivers", columns, rows)]
    parts += [
        remark("note", "{} ends in {}; its findings are back then", each.id, counted(left, "day"))
        for each in waivers
        if each.holds(today) and (left := each.days_left(today)) <= ENDS_SOON
    ]
    return Shown(waivers, parts, {"waivers": [waiver_as_json(each, today) for each in waivers]})


def shown_answers(kept: Sequence[Row[Any]]) -> Shown[Sequence[Row[Any]]]:
    """Show what partners answered to their findings."""
    columns = ["answered at", "partner", "sale", "code", "answer", "until", "text"]
    rows = [(of.answered_at, of.partner, of.sale_id, of.code, of.answer, of.until, of.text) for of in kept]
    document = [pick_camel(each, *each._fields) for each in kept]
    return Shown(kept, [table("Answers of partners", columns, rows)], {"answers": document})


def shown_answers_loaded(loaded: AnswersLoaded, name: str) -> Shown[AnswersLoaded]:
    """Show the answers that a file brought."""
    facts = {"not known before": loaded.new, "unchanged": loaded.unchanged, "rejected": len(loaded.rejected)}
    lines, rejected = of_rejected(loaded.rejected, loaded.rejected_files)
    parts = [figures(Message("{}: {}", name, counted(loaded.rows, "answer")), facts), *lines]
    document = pick_camel(loaded, "rows", "new", "unchanged") | rejected
    return Shown(loaded, parts, document, bool(loaded.rejected))
