"""Describe the numbers of a report: the headline, the notices of what weakens them, and their source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pandas as pd

from toolkit.contract.codes import CODES
from toolkit.contract.contents import Coverage, IntegrityProblem
from toolkit.contract.findings import Reason, Status, items
from toolkit.contract.service_rows import SENTENCES, ServiceChange
from toolkit.language import Language
from toolkit.message import Message, recognised
from toolkit.reports import wording
from toolkit.reports.audited import Audited
from toolkit.reports.report import Report

OWNERS_SHOWN: Final = 12


def headline(report: Report) -> str:
    """Return the answer in one sentence, with the partner that it is about where it is about one."""
    answer, partner = _answer(report.result, report.language), report.result.partner
    return answer if partner is None else f"{partner}: {answer[0].lower()}{answer[1:]}"


def _answer(result: Audited, language: Language) -> str:
    say, count = language.text, language.count
    if not result.sales:
        return say("No sale was known at this moment")
    if not result.open:
        return count(
            "The one sale has the evidence it needs",
            "All {} sales have the evidence they need",
            result.sales,
        )
    of_all = count("of {} sale", "of {} sales", result.sales)
    lacking = count("{} {} lacks evidence", "{} {} lack evidence", result.incomplete, of_all)
    if not result.conflict:
        return lacking
    if not result.incomplete:
        return count("{} {} is in conflict", "{} {} are in conflict", result.conflict, of_all)
    more = count("{} more is in conflict", "{} more are in conflict", result.conflict)
    return f"{lacking}, {more}"


def acting(report: Report) -> dict[str, Any]:
    """Return who acts, on how many sales and by when, and the compliant sales with an open finding."""

    def day(moments: pd.Series[Any]) -> str:
        return report.day(moments.min()) if len(moments) else ""

    rows, language = report.result.listed, report.language
    words = wording.names_in(wording.OWNER_NAMES, language)
    owners = Counter(owner for joined in rows["owners"] for owner in items(joined))
    late, good = rows["overdue"] > 0, rows["status"] == Status.COMPLIANT
    return {
        "owners": [(owner, words.get(owner, owner), sales) for owner, sales in owners.most_common(OWNERS_SHOWN)],
        "more": [language.text("and {:,} more", len(owners) - OWNERS_SHOWN)] * (len(owners) > OWNERS_SHOWN),
        "overdue": int(late.sum()),
        "oldest": language.text("the first since {}", day(rows.loc[late, "dueAt"])),
        "next": day(rows.loc[~late, "dueAt"].dropna()),
        "remarkable": int((good & (rows["open"] > 0)).sum()),
        "critical": int((good & (rows["critical"] > 0)).sum()),
    }


def acting_lines(report: Report) -> dict[str, str]:
    """Return the same as lines of texts, for pages without links."""
    found, say, number = acting(report), report.language.text, report.language.number
    lines = {
        say("Who acts, on how many sales"): ", ".join(
            [*(f"{name} {number(sales)}" for _, name, sales in found["owners"]), *found["more"]]
        ),
        say("Sales with an overdue finding"): found["overdue"]
        and f"{number(found['overdue'])}, {found['oldest']}",
        say("Next deadline"): found["next"],
        say("Compliant sales with an open finding"): found["remarkable"]
        and f"{number(found['remarkable'])}, {say('critical:')} {number(found['critical'])}",
        say("Compliant sales to be completed"): (ready := report.result.compliant_not_completed) and number(ready),
    }
    return {label: text for label, text in lines.items() if text}


def notices(report: Report) -> list[str]:
    """Return the facts that a reader must know before trusting the numbers."""
    return list(_notices(report.result, report.language, report.timezone))


def _notices(result: Audited, language: Language, timezone: ZoneInfo) -> Iterator[str]:
    say, count, source = language.text, language.count, result.facts.source
    if source.embedded:
        yield say(
            "Made on embedded services for trying out ({}): the numbers say nothing about real sales.",
            language.listed([say(name) for name in source.embedded]),
        )
    if result.facts.as_of - result.facts.made_at > timedelta(minutes=5):
        yield say(
            "A clock is or was wrong: this was made at {}, and observations are dated up to {}. Ages and "
            "deadlines are counted from there.",
            *(language.moment(each, timezone) for each in (result.facts.made_at, result.facts.as_of)),
        )
    if source.hidden_rows:
        yield say(
            "Row level security may hide rows of {} from the role that reads them: what is hidden is not judged, "
            "and evidence that is called missing may be there.",
            language.listed(source.hidden_rows),
        )
    yield from _of_changes(source.service_changes, language)
    yield from _of_rows(source.service_notes, language)
    if source.copied_rows:
        yield say(
            "What the service holds is read from materialised views or foreign tables ({}): how old that "
            "is, and what was changed or is hidden behind them, nobody knows here.",
            language.listed(source.copied_rows),
        )
    sync = source.last_sync
    if sync is None and result.sales:
        yield say("The bucket had never been read at this moment, so no file could count.")
    if sync is not None and result.facts.as_of - sync.finished_at > timedelta(days=1):
        yield say(
            "The bucket was last read at {}: what was sent or deleted since then is not known here.",
            language.moment(sync.finished_at, timezone),
        )
    if _may_be_another_bucket(result):
        yield say(
            "No file that an evidence record names lies in the bucket, although others do: this may be the bucket "
            "of something else, or the keys may be read in another way than they are written there."
        )
    if sync is not None and sync.denied:
        yield count(
            "The bucket refused to answer about {} file when it was read last: evidence that is called missing "
            "may be there, and evidence that counts may be gone.",
            "The bucket refused to answer about {} files when it was read last: evidence that is called missing "
            "may be there, and evidence that counts may be gone.",
            sync.denied,
        )
    since, taken_from = source.listed_since, sync and sync.taken_from
    if taken_from:
        yield say(
            "The bucket was not read: files are as {} tells, or as they were seen later. The oldest part of the "
            "listing is of {}.",
            taken_from,
            language.moment(since, timezone) if since else say("an unknown time"),
        )
    elif since is not None and result.facts.as_of - since > timedelta(days=1):
        yield say(
            "Files of completed sales are as they were last seen, some of them at {}; those of open sales were "
            "looked at by the last reading of the bucket.",
            language.moment(since, timezone),
        )
    if result.unexamined:
        yield count(
            "{} file counts although nobody has examined it.",
            "{} files count although nobody has examined them.",
            result.unexamined,
        )
    yield from _coverage_notices(result, language)
    if result.reviews.drawn:
        yield say(
            "People looked at {:,} of {:,} counted files; at {} of them nobody ever looked.",
            *(result.reviews.looked_at, result.reviews.files),
            language.percent(1 - result.reviews.looked_at / max(result.reviews.files, 1)),
        )
    if result.compliant_on_replaced:
        yield count(
            "{} compliant sale has a file that was replaced after it had been seen: what lies there "
            "now was judged, not the first one.",
            "{} compliant sales have files that were replaced after they had been seen: what lies "
            "there now was judged, not the first ones.",
            result.compliant_on_replaced,
        )
    gone = result.change_counts["saleGone"]
    if gone and result.facts.changes_since is not None:
        yield count(
            "{} finding is resolved since {} only because its sale is gone: nobody mended it.",
            "{} findings are resolved since {} only because their sales are gone: nobody mended them.",
            gone,
            language.moment(result.facts.changes_since, timezone),
        )
    if result.file_findings:
        kinds = Counter(finding["problem"] for finding in result.file_findings)
        listed = ", ".join(
            f"{say(CODES[problem].name)} ({language.number(kinds[problem])})"
            for problem in IntegrityProblem
            if kinds[problem]
        )
        yield say("There are findings about files: {}.", listed)
    if result.without_client:
        yield count(
            "{} sale without a client: nobody can be asked for evidence.",
            "{} sales without a client: nobody can be asked for evidence.",
            result.without_client,
        )
    if result.cpf_shown:
        yield say("This report holds whole CPFs: keep it as closely as the contracts themselves.")


def _of_rows(sentences: Iterable[str], language: Language) -> list[str]:
    return [language.tell(recognised(each, SENTENCES.values())) for each in sentences]


def _of_changes(sentences: Iterable[str], language: Language) -> Iterator[str]:
    for each in sentences:
        change = recognised(each, ServiceChange)
        if change.template == ServiceChange.JUMPED:
            counted, before = change.values
            [sentence] = _of_rows([f"{counted}."], language)
            change = Message(change.template, sentence.removesuffix("."), before)
        yield language.tell(change)


def _may_be_another_bucket(result: Audited) -> bool:
    """Tell whether the bucket holds files, and none of those that the records name."""
    strangers = {IntegrityProblem.OBJECT_WITHOUT_RECORD, IntegrityProblem.KEY_OUTSIDE_LAYOUT}
    if any(result.coverage.values()) or strangers.isdisjoint(each["problem"] for each in result.file_findings):
        return False
    pieces, service = result.missing[[*Reason]].sum(), result.facts.service
    none_named = service is not None and not service["counts"]["records"]
    return bool((none_named or pieces[_NOT_THERE].any()) and not pieces[[Reason.UNUSABLE, Reason.VANISHED]].any())


_NOT_THERE: Final = [Reason.NOT_UPLOADED, Reason.EXPIRY_UNKNOWN, Reason.EXPIRED]


def _coverage_notices(result: Audited, language: Language) -> Iterator[str]:
    say, count = language.text, language.count
    if result.facts.of_now and not result.facts.verified_first:
        yield say("The contents of new files were not verified before this report.")
    coverage = result.coverage
    files = sum(coverage.values())
    if files and coverage[Coverage.VERIFIED] == files:
        yield count("The one counted file is fully verified.", "All {} counted files are fully verified.", files)
    elif files:
        yield count(
            "Of {} counted file, {} is fully verified, {} by its first bytes only, {} was never looked at, {} "
            "could not be read.",
            "Of {} counted files, {} are fully verified, {} by their first bytes only, {} were never looked at, "
            "{} could not be read.",
            files,
            *(language.number(coverage[each]) for each in Coverage),
        )
    if result.facts.files.older_look:
        yield count(
            "{} counted file was verified by an older way of looking, which may have missed what is "
            "found today. It is verified again by: toolkit evidence verify",
            "{} counted files were verified by an older way of looking, which may have missed what is "
            "found today. They are verified again by: toolkit evidence verify",
            result.facts.files.older_look,
        )
    if result.facts.files.without_speech:
        yield count(
            "In {} counted recording nothing looked for speech, as the extra `speech` was not installed: "
            "music or a dial tone counts without a finding.",
            "In {} counted recordings nothing looked for speech, as the extra `speech` was not installed: "
            "music or a dial tone counts without a finding.",
            result.facts.files.without_speech,
        )
    if unproven := result.compliant - result.compliant_verified:
        yield count(
            "{} compliant sale rests on files that are not fully verified.",
            "{} compliant sales rest on files that are not fully verified.",
            unproven,
        )


def provenance(report: Report) -> dict[str, str]:
    """Return the source of the numbers, for those who have to vouch for them."""
    result, language, timezone = report.result, report.language, report.timezone
    say, source, sync = language.text, result.facts.source, result.facts.source.last_sync
    database = language.tell(source.database)
    bucket = sync and recognised(sync.bucket, ["{} (embedded bucket)"])
    readers = [f"{name} ({language.number(files)})" for name, files in result.facts.files.readers.items()]

    def moment(at: datetime | None) -> str:
        return language.moment(at, timezone) if at else say("never")

    facts = {
        say("Partner"): result.partner,
        say("As of"): language.moment(result.facts.as_of, timezone),
        say("Database"): database if source.replica is None else f"{database} ({source.replica})",
        say("Rows left out"): " ".join(_of_rows(source.rows_left_out, language)),
        say("Bucket"): language.tell(bucket) if bucket else say("never read"),
        say("Bucket read"): moment(sync.finished_at if sync else None),
        say("Oldest part of the listing"): moment(source.listed_since),
        say("Readers of files"): language.listed(readers) or say("none yet"),
        say("Files counted unexamined"): language.number(result.unexamined),
        say("Sales without a client"): language.number(result.without_client),
        say("Times"): say("in {}", timezone.key),
        say("Rules"): source.rules,
        say("Toolkit"): source.toolkit,
        say("Custody seal"): source.seal or say("none yet"),
    }
    return {label: text for label, text in facts.items() if text}
