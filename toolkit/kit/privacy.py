"""The rights of persons through the toolkit's object: what is known of one, holds, requests, erasure."""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from toolkit.atomic_files import PrivateFolder
from toolkit.contract.fields import pick_camel
from toolkit.contract.people import mask_cpf
from toolkit.contract.privacy import (
    COMPLEMENT_DAYS,
    NOTICE_DAYS,
    PERSONAL,
    AnswerOutcome,
    Category,
    PrivacyPlan,
    Right,
    business_days_after,
    read_plan,
)
from toolkit.errors import InvalidInput, PrivacyRefused
from toolkit.kit.process import operation
from toolkit.kit.services import Services
from toolkit.kit.shown import Shown, figures, links, say, table
from toolkit.kit.spoken import _, counted
from toolkit.message import Message
from toolkit.privacy import persons
from toolkit.privacy.erasure import Erasure, ErasurePlan, erase, pending, plan_erasure, replay, unlisted
from toolkit.privacy.persons import KnownPerson, SaleOfPerson
from toolkit.privacy.searching import search

_OF_SALES = ["sale", "partner", "records", "kept"]


class Privacy:
    """The duties that the LGPD gives whoever keeps evidence; ``kit.privacy`` is one.

    CPFs are arguments of methods only; commands read them from standard input.
    """

    def __init__(self, kit: Services) -> None:
        self._kit, self.environ, self._zone = kit, kit.environ, kit.settings.timezone

    @property
    def plan(self) -> PrivacyPlan:
        """The periods for which evidence is kept, and the texts of the record of processing."""
        return read_plan(self._kit.settings.privacy)

    @property
    def ledger(self) -> Path:
        """The file that lists what was erased, outside of the database."""
        return self._kit.settings.erasure_ledger or self._kit.settings.home / "erasures.jsonl"

    def show(self, cpf: str) -> Shown[KnownPerson]:
        """Tell what is kept of a person, without showing it: which fields, sales and records, and what holds them.

        Raises:
            InvalidInput: that is no CPF.
        """
        person = self._find(cpf)
        rows = [(each["id"], each["created_at"], " ".join(_stored(each))) for each in person.clients]
        facts = {"clients": len(rows), "sales": len(person.sales)}
        parts = [
            figures(mask_cpf(person.cpf), facts),
            table("Clients", ["id", "since", "fields stored"], rows),
            table("Sales", _OF_SALES, _rows(person.sales)),
        ]
        document = {
            "cpf": mask_cpf(person.cpf),
            "clients": [{"id": each["id"], "fields": _stored(each)} for each in person.clients],
            "sales": [_sale_document(each) for each in person.sales],
        }
        return Shown(person, parts, document)

    @operation
    def export(self, cpf: str, out: str | Path = ".", *, reason: str, with_files: bool = False) -> Shown[Path]:
        """Write the full copy for a person into a ZIP that only its owner reads; ``result`` is its path.

        Args:
            cpf: the person's.
            out: the folder.
            reason: why; the custody log keeps it with your account.
            with_files: add the files of the evidence; the custody log tells each as opened.

        Raises:
            InvalidInput: that is no CPF, or there is no reason.
            PrivacyRefused: nothing is known of the person.
        """
        kit = self._kit
        person = self._find(cpf)
        if not person.clients and not person.sales:
            raise PrivacyRefused("Nothing is known of this person.")
        kit.unmask(reason, "all data of a person, for the person")
        content = kit.database.run(persons.export_of, person)
        name = f"person-{kit.clock().astimezone(self._zone):%Y%m%dT%H%M%S-%f}.zip"
        private = PrivateFolder(kit.path(out))
        with kit.scratch() as scratch, private as draft:
            with zipfile.ZipFile(draft / name, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("person.json", json.dumps(content, ensure_ascii=False, indent=2, default=str))
                keys = {each["id"]: each["object_key"] for each in content["records"] if with_files}
                for _record, path in kit.files_of(keys, reason, scratch):
                    archive.write(path, f"files/{path.name}")
            written = private.publish(draft / name, name)
        return Shown(written, [links("The copy for the person", [written])])

    @operation
    def erase(
        self,
        cpf: str | None = None,
        *,
        sale_ids: Sequence[str] = (),
        basis: str = "",
        by: str = "",
        approved_by: str = "",
        look_in: Iterable[str | Path] = (),
        dry_run: bool = False,
    ) -> Shown[ErasurePlan]:
        """Erase what is known of a person, or of sales: objects in every version, rows, names in histories, files.

        A client goes with the last of the sales; what is held, or within the period of its evidence, stays. The
        custody log keeps that something was erased, and everything that was proven before still verifies.

        Args:
            cpf: the person's.
            sale_ids: sales instead of a person.
            basis: the reason or legal basis.
            by: the person who asks for it.
            approved_by: somebody else.
            look_in: folders with reports, rejected rows and executed notebooks: their files that hold the CPF, the
                name, an address or the name of a file go, too.
            dry_run: only tell what would be removed.

        Raises:
            InvalidInput: there is no such folder, or not either a CPF or sales.
            PrivacyRefused: there is nothing to be removed, or the approver is the same person.
            WriteRefused: ``service.sql`` has no statements that erase.
        """
        kit = self._kit
        if (cpf is None) == (not sale_ids):
            raise InvalidInput("Give a CPF or sales, and not both.")
        planned = self._planned(cpf, sale_ids)
        plan = kit.database.run(planned)
        folders = [kit.path(each) for each in look_in]
        for absent in (each for each in folders if not each.is_dir()):
            raise InvalidInput("There is no folder {}.", absent)
        found, unknown = search((kit.credentials_folder, *folders), plan.needles)
        plan = replace(plan, files=found, not_searched=unknown)
        stated = {"basis": basis, "by": by, "approved_by": approved_by}
        return self._carried_out(plan, planned, None if dry_run else stated)

    def _planned(self, cpf: str | None, sale_ids: Sequence[str]) -> partial[ErasurePlan]:
        return partial(plan_erasure, cpf=cpf, sale_ids=sale_ids, plan=self.plan, zone=self._zone)

    def _carried_out(
        self, plan: ErasurePlan, planned: partial[ErasurePlan], stated: Mapping[str, str] | None
    ) -> Shown[ErasurePlan]:
        """Erase by what two people ``stated``; without it only tell what would be removed."""
        kit, done = self._kit, None
        if stated is not None:
            with suppress(OSError), kit.scratch():
                pass  # files of evidence go that killed commands left in the home
            done = erase(kit.database, kit.bucket, plan, planned, self.ledger, **stated)
            kit.seal_if_possible()
        facts = {
            "clients": len(plan.clients),
            "sales": len(plan.sales),
            "objects": len(plan.keys),
            "files": len(plan.files),
            "kept": len(plan.kept),
        }
        parts = [figures("Erased" if done else "Would be erased", facts)]
        if plan.sales:
            parts.append(table("Sales", _OF_SALES, _rows(plan.sales)))
        if plan.kept:
            parts.append(table("Kept", _OF_SALES, _rows(plan.kept)))
        if plan.files:
            parts.append(links("Files", plan.files))
        if plan.not_searched:
            parts.append(links("Files that hold no text that can be searched; look yourself", plan.not_searched))
        document = {
            "erasure": done and done.id,
            "clients": plan.clients,
            "sales": [each.id for each in plan.sales],
            "records": sorted(set(plan.keys.values())),
            "objects": len(plan.keys),
            "files": plan.files,
            "notSearched": plan.not_searched,
            "kept": [_sale_document(each) for each in plan.kept],
        }
        return Shown(plan, parts, document, bool(plan.kept))

    def hold(self, sale_id: str, *, basis: str, by: str, until: date | None = None) -> UUID:
        """Keep the data of a sale from being erased; return the id of the hold."""
        kit = self._kit
        return persons.add_hold(kit.database, sale_id, basis=basis, by=by, until=until, today=kit.today())

    def release(self, hold: UUID, *, reason: str, by: str) -> None:
        """Release a hold: the data of its sale may be erased again."""
        persons.release_hold(self._kit.database, hold, reason=reason, by=by)

    def holds(self) -> Shown[Sequence[Row[Any]]]:
        """List all holds, the newest first."""
        found = self._kit.database.run(persons.holds_at, self._kit.today())
        rows = [(each.id, _(each.state), each.sale_id, each.basis, each.held_by, each.until) for each in found]
        columns = ["id", "state", "sale", "basis", "by", "until"]
        document = [pick_camel(each, *each._fields) for each in found]
        return Shown(found, [table("Holds", columns, rows)], {"holds": document})

    def request(self, cpf: str, right: Right, received: date | None = None) -> Row[Any]:
        """Note a request of a person; it is due in 15 days. The CPF is kept as a keyed hash."""
        kit = self._kit
        subject, day = persons.subject_of(cpf, kit.log_keys), received or kit.today()
        return persons.add_request(kit.database, subject, right, day, today=kit.today())

    def requests(self, cpf: str | None = None) -> Shown[Sequence[Row[Any]]]:
        """List requests, all of them or those of one person; overdue ones need attention."""
        kit = self._kit
        found = kit.database.run(persons.requests_at, kit.today())
        if cpf is not None:
            subject = persons.subject_of(cpf, kit.log_keys)
            found = [each for each in found if each.subject == subject]
        rows = [
            (each.id, _(each.state), _(Right(each.right).text), each.received_on, each.due_on, each.basis)
            for each in found
        ]
        columns = ["id", "state", "right", "received", "due", "basis"]
        document = [pick_camel(each, "id", "right", "received_on", "due_on", "outcome", "state") for each in found]
        attention = any(each.state == "overdue" for each in found)
        return Shown(found, [table("Requests of persons", columns, rows)], {"requests": document}, attention)

    def close(self, request: UUID, outcome: AnswerOutcome, *, basis: str, by: str) -> None:
        """Note how a request was answered, and on which basis: a reasoned refusal is an answer, too."""
        persons.close_request(self._kit.database, request, outcome, basis=basis, by=by)

    @operation
    def retention(self, *, by: str = "", approved_by: str = "", erase_them: bool = False) -> Shown[ErasurePlan]:
        """Tell whose evidence is beyond its period, and erase it where two people ask for it.

        Sales whose types of evidence have no period, that are held, or whose client has an open request stay.

        Raises:
            PrivacyRefused: there are no periods, or nothing is to be erased.
        """
        kit, rules = self._kit, self.plan
        if not rules.retention:
            raise PrivacyRefused("No periods are set: TOOLKIT_PRIVACY names a file with tables [[retention]].")
        with kit.database.transaction() as connection:
            ids = persons.beyond_periods(connection, rules, self._zone, kit.log_keys)
            planned = self._planned(None, ids)
            plan = planned(connection)
        basis = Message("period ended: {}", "; ".join(sorted({rule.basis for rule in rules.retention})))
        stated = {"basis": basis, "by": by, "approved_by": approved_by}
        return self._carried_out(plan, planned, stated if erase_them else None)

    def record(self) -> Shown[dict[str, Any]]:
        """Write the record of processing (LGPD, art. 37), from the registry of personal columns."""
        rules = self.plan
        columns = {f"{name}.{column}": kind.text for name, of in PERSONAL.items() for column, kind in of.items()}
        stored = {
            category.text: sorted(column for column, of in columns.items() if of == category.text)
            for category in Category
        }
        kept = [{"of": sorted(each.of)} | pick_camel(each, "start", "days", "basis") for each in rules.retention]
        periods = [(", ".join(each["of"]), each["start"], each["days"], each["basis"]) for each in kept]
        document = {
            **pick_camel(rules, "contact", "sharing", "security", "remarks"),
            "subjects": ["clients of energy utilities", "persons who pay for them", "staff and partners"],
            "personalData": stored,
            "retention": kept,
            "purposeAndLegalBasis": pick_camel(rules, "purpose", "legal_basis"),
        }
        required = ("contact", "purpose", "legal_basis", "sharing", "security")
        texts = {name: getattr(rules, name) for name in required}
        missing = [name.replace("_", "-") for name, text in texts.items() if not text]
        rows = [(_(category), ", ".join(columns)) for category, columns in stored.items()]
        facts = {name.replace("_", " "): text for name, text in texts.items()} | {"remarks": rules.remarks}
        parts = [
            figures("Record of processing", facts),
            table("Personal data", ["category", "columns"], rows),
            table("Periods", ["types", "from", "days", "basis"], periods),
        ]
        if missing:
            parts.append(say("Not said in the file of TOOLKIT_PRIVACY: {}.", ", ".join(missing)))
        return Shown(document, parts, document, bool(missing))

    def incident(self, since: datetime, until: datetime, known_on: date) -> Shown[Sequence[Row[Any]]]:
        """Tell who saw personal data in a time, of which sales, and by when whom to notify.

        Raises:
            InvalidInput: the end comes before the beginning, or it became known on a day that is still to come.
        """
        if until <= since:
            raise InvalidInput("The end must come after the beginning.")
        if known_on > self._kit.today():
            raise InvalidInput("An incident became known on a day that has been.")
        found = self._kit.database.run(persons.accesses, since, until)
        notice, complement = (business_days_after(known_on, days) for days in (NOTICE_DAYS, COMPLEMENT_DAYS))
        touched = sorted({each.sale_id for each in found if each.sale_id})
        accounts = {each.account for each in found}
        facts = {"events": len(found), "accounts": len(accounts), "sales": len(touched)}
        dates = say("Notify the ANPD and the persons by {}, and add what was left out by {}.", notice, complement)
        rows = [(each.at, each.kind, each.account, each.sale_id or _(each.what), each.reason) for each in found]
        columns = ["when", "event", "by", "about", "reason"]
        parts = [figures("Accesses to personal data", facts), table("Accesses", columns, rows), dates]
        seen = [pick_camel(each, "at", "kind", "account", "what", "reason", "sale_id") for each in found]
        document = {"accesses": seen, "sales": touched, "noticeBy": notice, "complementBy": complement}
        return Shown(found, parts, document)

    @operation
    def replay(self, *, dry_run: bool = False) -> Shown[Sequence[Erasure]]:
        """Erase again what a restored backup brought back, by the ledger."""
        kit = self._kit
        if dry_run:
            found = kit.database.run(pending, self.ledger)
        else:
            found = replay(kit.database, kit.bucket, self.ledger)
            kit.seal_if_possible()
        number = counted(len(found), "erasure")
        parts = [say("{} would be carried out again" if dry_run else "{} carried out again", number)]
        if not self.ledger.exists():
            parts.append(say("There is no ledger at {}: nothing was erased yet, or it was lost.", self.ledger))
        if lost := kit.database.run(unlisted, self.ledger):
            number = counted(lost, "erasure")
            parts.append(say("{} does not list {} that the database knows.", self.ledger, number))
        document = {"erasures": [each.id for each in found], "unlisted": lost}
        return Shown(found, parts, document, bool(lost or (dry_run and found)))

    def _find(self, cpf: str) -> KnownPerson:
        return self._kit.database.run(persons.find_person, cpf, self.plan, self._zone)


def _stored(row: Any) -> list[str]:
    return [name for name, value in row.items() if value is not None and name not in ("id", "created_at")]


def _rows(found: Sequence[SaleOfPerson]) -> list[tuple[object, ...]]:
    return [(each.id, each.partner, each.records, each.kept and _(each.kept)) for each in found]


def _sale_document(sale: SaleOfPerson) -> dict[str, Any]:
    return {"saleId": sale.id} | pick_camel(sale, "partner", "records", "kept")
