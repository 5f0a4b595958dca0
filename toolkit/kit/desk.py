"""The desk where people look at files: the next file, its questions, their answers; as widgets in a notebook."""

import csv
from collections.abc import Mapping, Sequence
from datetime import timedelta
from html import escape
from pathlib import Path
from shlex import quote
from threading import Timer
from typing import Any, Final
from uuid import UUID

from toolkit.atomic_files import atomic_file
from toolkit.audit.reviews import CLAIMED_FOR, RISK, Drawn, Reviewed, Turn, keep_review, open_questions, take_turns
from toolkit.contract.evidence import KIND_OF, EvidenceType, FileKind
from toolkit.contract.fields import pick_camel
from toolkit.contract.scorecards import Mark
from toolkit.errors import InvalidField, InvalidFields, InvalidInput, ReviewRefused, ToolkitError
from toolkit.evidence.records import records_of
from toolkit.extras import require
from toolkit.intake.headings import Headings
from toolkit.intake.sources import harmless, source_of
from toolkit.intake.tables import Table
from toolkit.kit.process import id_from
from toolkit.kit.results import of_rejected
from toolkit.kit.services import Services
from toolkit.kit.shown import Part, Shown, figures, links, remark, say, table
from toolkit.kit.spoken import _, counted, current_language
from toolkit.language import LANGUAGES, language
from toolkit.message import Message

_DRAWN_AFTER: Final = (0.3, 1, 3)
"""Seconds after which the browser may have drawn new widgets: only then one of them can have the focus."""

LINK_SECONDS: Final = 600  # the life of the address under which a recording is played

ELSEWHERE: Final = timedelta(days=3)
"""The time for which files are one person's who looks at them elsewhere, by a CSV file."""

_OF_FILE: Final = ("evidenceId", "saleId", "partner", "evidenceType")

MARKS: Final = {Mark.YES: "yes", Mark.NO: "no", Mark.NOT_APPLICABLE: "not applicable"}  # the answers in words


class ReviewDesk:
    """The desk of one reviewer; in a notebook it shows the next file with its questions."""

    def __init__(self, kit: Services, reviewer: str) -> None:
        """Open it; ``reviewer`` is the name that the four-eyes rule compares."""
        self._kit, self.reviewer = kit, reviewer

    def next(self, *, most: int = 1, out: str | Path | None = None) -> Shown[Sequence[Turn]]:
        """Take the next files; nobody else gets them for half an hour, or three days with ``out``.

        Args:
            most: how many.
            out: a CSV file to fill in and give to ``load``: one row a file, one column a question.

        Raises:
            ReviewRefused: the name of the reviewer is missing, or not in Latin letters.
        """
        from toolkit.kit.sales import shown_sale

        kit, claimed_for = self._kit, CLAIMED_FOR if out is None else ELSEWHERE
        turns = take_turns(kit.database, self.reviewer, most=most, claimed_for=claimed_for)
        path = None if out is None or not turns else kit.path(out)
        if path is not None:
            _write_sheet(turns, path)
        found = {turn.sale_id: kit.case_of(turn.sale_id) for turn in turns} if path is None else {}
        sales = [shown_sale(case, kit.today(), cpf).parts[0] for case, cpf in found.values()]
        return _shown_turns(turns, self.reviewer, path, sales)

    def record(
        self, evidence_id: UUID | str, answers: Mapping[str, str | None], *, comment: str | None = None
    ) -> Shown[Reviewed]:
        """Keep the answers to the questions about a file that is before you: ``yes``, ``no``, ``notApplicable``.

        Raises:
            InvalidFields: a question is not answered, or not by one of these.
            ReviewRefused: the file is not before you.
        """
        return shown_review(self._kept(id_from(evidence_id), answers, comment))

    def load(self, file: str | Path, *, out: str | Path | None = None) -> Shown[int]:
        """Keep the answers in a CSV or XLSX file that ``next`` wrote; ``result`` counts them.

        Rows without an answer are left out; rejected rows come back as files, into ``out`` or beside the file.

        Raises:
            UnreadableFile: it is no table, or lacks the column evidenceId.
        """
        path = self._kit.path(file)
        asked = dict[str, list[str]]()
        for name, text in sorted(open_questions(self._kit.database)):
            asked.setdefault(name, []).extend(f"{name}: {language(code).tell(text)}" for code in LANGUAGES)
        fields = dict.fromkeys(_OF_FILE, ()) | asked | {"comment": ()}
        found = Table(source_of(path), Headings(fields, [*fields][1:]))
        kept, rejected = 0, dict[int, Sequence[InvalidField]]()
        for line, cells in found.bodies():
            body = {name: cell for name, cell in cells.items() if isinstance(cell, str)}
            answers = {name: body.get(name) for name in asked if body.get(name)}
            if not answers:
                continue
            try:
                self._kept(id_from(body.get("evidenceId", "")), answers, body.get("comment"))
                kept += 1
            except InvalidFields as error:
                rejected[line] = error.invalid
            except (InvalidInput, ReviewRefused) as error:
                rejected[line] = (InvalidField("evidenceId", error.message),)
        files = found.hand_back(rejected, None if out is None else self._kit.path(out), current_language())
        lines, document = of_rejected(rejected, files)
        facts = {"kept": kept, "rejected": len(rejected)}
        parts = [figures(Message("{}: {}", path.name, counted(kept + len(rejected), "review")), facts), *lines]
        return Shown(kept, parts, {"rows": kept + len(rejected), "kept": kept, **document}, bool(rejected))

    def _kept(self, evidence_id: UUID, answers: Mapping[str, str | None], comment: str | None) -> Reviewed:
        kit = self._kit
        return keep_review(
            kit.database,
            kit.bucket,
            evidence_id,
            answers,
            reviewer=self.reviewer,
            comment=comment,
            timezone=kit.settings.timezone,
        )

    def pages(self, turn: Turn) -> list[bytes]:
        """Return the first pages of a document as PNG; the custody log tells that it was opened."""
        from toolkit.evidence.inspection import drawn_pages

        records = records_of(self._kit.database, turn.sale_id)
        keys = {each.id: each.object_key for each in records if each.id == turn.evidence_id}
        with self._kit.scratch() as folder:
            for _record, path in self._kit.files_of(keys, "review", folder, by=self.reviewer):
                with path.open("rb") as file:
                    return drawn_pages(file)
        return []

    def _repr_mimebundle_(self, **_: object) -> Any:
        """Show the next file with its questions; the notebook saves how the box looks while it is empty."""
        require("lab", "Desks of reviewers")
        from ipywidgets import VBox

        box = VBox()
        empty = box._repr_mimebundle_()  # the name that IPython gives it
        self.show(box)
        return empty

    def show(self, box: Any, said: str = "") -> None:
        """Show the next file beside its sale and its questions, and above it what became of the one before.

        Tab goes to the next question, and the first letter of an answer is enough.
        """
        from ipywidgets import HTML, Box, Button, Combobox, Text, VBox

        shown = self.next()
        turns = shown.result
        if not turns:
            box.children = [HTML(_paragraph(said)), *(HTML(part.html) for part in shown.parts)]
            return
        turn, wrong = turns[0], HTML()
        words = [_(text) for text in MARKS.values()]
        questions = {each.id: Combobox(options=words, placeholder=" / ".join(words)) for each in turn.questions}
        comment = Text(description=_("Comment"))
        button = Button(description=_("Keep and show the next"), button_style="primary", layout={"width": "auto"})

        def keep(_button: object) -> None:
            answers = {name: _mark(each.value) for name, each in questions.items()}
            try:
                kept = self.record(turn.evidence_id, answers, comment=comment.value)
            except InvalidFields as error:
                texts = {each.id: each.text for each in turn.questions}
                wrong.value = "".join(
                    _paragraph(f"{texts.get(each.field, each.field)} {_(each.message)}") for each in error.invalid
                )
            except ToolkitError as error:
                wrong.value = _paragraph(_(error.message))
            else:
                self.show(box, " · ".join(map(str.strip, str(kept).splitlines())))

        button.on_click(keep)
        heading = f"{turn.sale_id} · {turn.partner or _('no partner')} · {turn.evidence_type}"
        sale = HTML(_paragraph(shown.parts[1].text, "pre"))
        asked = [
            part for each in turn.questions for part in (HTML(_paragraph(each.text, "b")), questions[each.id])
        ]
        beside = [
            VBox(self._file(turn), layout={"flex": "1 1 24em", "max_height": "75vh", "overflow": "auto"}),
            VBox([sale, *asked, comment, button, wrong], layout={"flex": "0 1 29em"}),
        ]
        looks = {"flex_flow": "row wrap", "align_items": "flex-start", "grid_gap": "1em"}
        box.children = [HTML(_paragraph(said)), HTML(_paragraph(heading, "h3")), Box(beside, layout=looks)]
        first = next(iter(questions.values()))
        for seconds in _DRAWN_AFTER:
            Timer(seconds, lambda: first.value or first.focus()).start()

    def _file(self, turn: Turn) -> list[Any]:
        from ipywidgets import HTML, Image

        if KIND_OF[EvidenceType(turn.evidence_type)] is FileKind.PDF:
            pages, width = self.pages(turn), {"max_width": "100%", "flex": "0 0 auto"}
            return [Image(value=each, format="png", layout=width) for each in pages]
        link = self._kit.link(turn.evidence_id, reason="review", by=self.reviewer, seconds=LINK_SECONDS)
        return [HTML(f'<audio controls autoplay src="{escape(link.url)}"></audio>')]


def _mark(typed: str) -> str:
    """Return the answer that begins with what was typed, in the language that is spoken."""
    begun = typed.strip().casefold()
    return next((mark for mark, text in MARKS.items() if begun and _(text).casefold().startswith(begun)), typed)


def _paragraph(text: str, tag: str = "p") -> str:
    return f"<{tag}>{escape(text)}</{tag}>" if text else ""


def _write_sheet(turns: Sequence[Turn], path: Path) -> None:
    asked = {question.id: _(question.text) for turn in turns for question in turn.questions}
    with atomic_file(path) as draft:
        draft.write("\ufeff")  # a spreadsheet program knows the encoding by it
        writer = csv.writer(draft, delimiter=";")
        writer.writerow([*_OF_FILE, *(harmless(f"{name}: {text}") for name, text in asked.items()), "comment"])
        for each in turns:
            row = (each.evidence_id, each.sale_id, each.partner or "", each.evidence_type)
            writer.writerow([harmless(str(cell)) for cell in row])


def shown_drawn(drawn: Drawn) -> Shown[Drawn]:
    """Show a sample: of each partner and type, how many files could be drawn, and how many were."""
    columns = ["partner", "type", "files", "drawn"]
    rows = [(partner or _("no partner"), *rest) for partner, *rest in map(dict.values, drawn.strata)]
    facts = {"drawn": drawn.files, "for two people": drawn.second, "seed": str(drawn.seed)}
    document = pick_camel(drawn, "id", "as_of", "second", "seed", "strata") | {"drawn": drawn.files}
    risk = Message("A file with a finding about it was {} times as likely to be drawn.", RISK)
    return Shown(drawn, [figures("Files to be looked at", facts, risk), table("Sample", columns, rows)], document)


def _shown_turns(
    turns: Sequence[Turn], reviewer: str, path: Path | None, sales: Sequence[Part]
) -> Shown[Sequence[Turn]]:
    if not turns:
        return Shown(
            turns, [say("Nothing is left to be looked at; draw files by: toolkit review draw")], {"files": []}
        )
    columns = ["evidence", "sale", "partner", "type"]
    rows = [(each.evidence_id, each.sale_id, each.partner or "", each.evidence_type) for each in turns]
    asked = {question.id: _(question.text) for turn in turns for question in turn.questions}
    parts = [table("Files before you", columns, rows), *sales]
    parts.append(table("Questions", ["id", "question"], asked.items()))
    if path is None:
        note = Message(
            "hear or see a file by: toolkit evidence link EVIDENCE_ID --reason review --by {}", quote(reviewer)
        )
        parts.append(remark("note", note))
    else:
        parts.append(links("to be filled in", [path]))
    document = [
        dict(zip(_OF_FILE, row, strict=True))
        | {"until": turn.claimed_until}
        | {"questions": [{"id": each.id, "text": each.text} for each in turn.questions]}
        for row, turn in zip(rows, turns, strict=True)
    ]
    return Shown(turns, parts, {"files": document})


def shown_review(kept: Reviewed) -> Shown[Reviewed]:
    """Show what became of one look."""
    outcome = _("failed") if kept.failures else _("passed")
    facts = {"sale": kept.sale_id, "outcome": outcome}
    if kept.failures:
        facts |= {"questions that it fails": ", ".join(kept.failures)}
    if kept.score is not None:
        facts["score"] = current_language().percent(kept.score)
    parts = [figures("Kept", facts)]
    if kept.looked_at_again:
        parts.append(say("Another person looks at the file, too."))
    document = pick_camel(kept, "evidence_id", "sale_id", "failures", "score")
    return Shown(kept, parts, document | {"again": kept.looked_at_again})
