"""``toolkit explain``: the meaning of a code, its section of the contract, and the remedy."""

from typing import Any

import click

from toolkit.cli.context import finish, json_option
from toolkit.contract.codes import CODES, Code, Subject, similar
from toolkit.contract.fields import pick_camel
from toolkit.kit.shown import Shown, figures, table
from toolkit.kit.spoken import _, counted
from toolkit.message import Message, either


@click.command()
@click.argument("code", required=False)
@json_option
def explain(code: str | None, as_json: bool) -> int:
    """Say what CODE means, where the contract says so, and what to do; without CODE, list every code.

    Examples:
      toolkit explain
      toolkit explain KYC_NOT_ALONE
      toolkit explain MISSING_POV --json
    """
    if code is None:
        return finish(_every_code(), as_json)
    known = CODES.get(code.strip().upper())
    if known is None:
        likely = similar(code)
        unknown = Message("there is no code {!r}. toolkit explain lists all of them.", code)
        if likely:
            unknown = Message("there is no code {!r}. Did you mean {}?", code, either(likely))
        raise click.BadParameter(unknown, param_hint="CODE")
    facts = {
        "meaning": _(known.meaning),
        _("contract"): _(known.section),
        "remedy": _(known.remedy),
        "about": _(known.subject.text),
        "severity": known.severity and _(known.severity),
        "owner": known.owner and _(known.owner),
        "deadline": counted(known.deadline, "business day") if known.deadline else None,
    }
    heading = Message("{}: {}", known.code, _(known.name))
    parts = [figures(heading, {name: text for name, text in facts.items() if text})]
    return finish(Shown(known, parts, _as_json(known)), as_json)


def _every_code() -> Shown[Any]:
    parts, columns = [], ["code", "severity", "meaning"]
    for subject in Subject:
        codes = [each for each in CODES.values() if each.subject is subject]
        rows = [(each.code, each.severity and _(each.severity), _(each.meaning)) for each in codes]
        parts.append(table(subject.text, columns, rows))
    return Shown(CODES, parts, {"codes": [_as_json(each) for each in CODES.values()]})


def _as_json(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "about": code.subject,
        **pick_camel(code, "name", "meaning", "section", "remedy", "severity", "owner"),
        "deadlineBusinessDays": code.deadline,
    }
