"""``toolkit explain``: the meaning of a code, its section of the contract, and the remedy."""

from typing import Any

import click

from toolkit.cli.context import json_option, print_json, show
from toolkit.contract.codes import CODES, Code, Subject, similar
from toolkit.contract.fields import pick_camel
from toolkit.kit.spoken import _, counted
from toolkit.message import Message, either


@click.command()
@click.argument("code", required=False)
@json_option
def explain(code: str | None, as_json: bool) -> None:
    """Say what CODE means, where the contract says so, and what to do; without CODE, list every code.

    Examples:
      toolkit explain
      toolkit explain KYC_NOT_ALONE
      toolkit explain MISSING_POV --json
    """
    if code is None:
        if as_json:
            print_json({"codes": [_as_json(each) for each in CODES.values()]})
        else:
            _list_all()
        return
    known = CODES.get(code.strip().upper())
    if known is None:
        likely = similar(code)
        unknown = Message("there is no code {!r}. toolkit explain lists all of them.", code)
        if likely:
            unknown = Message("there is no code {!r}. Did you mean {}?", code, either(likely))
        raise click.BadParameter(unknown, param_hint="CODE")
    if as_json:
        print_json(_as_json(known))
    else:
        _show(known)


def _list_all() -> None:
    width = max(map(len, CODES))
    for subject in Subject:
        show("{}:", _(subject.text))
        for each in CODES.values():
            if each.subject is subject:
                show(f"  {each.code:<{width}}  {_(each.severity or ''):<8}  {_(each.meaning)}")


def _show(code: Code) -> None:
    show("{}: {}", code.code, _(code.name))
    facts = {
        "meaning": _(code.meaning),
        _("contract"): _(code.section),
        "remedy": _(code.remedy),
        "about": _(code.subject.text),
        "severity": code.severity and _(code.severity),
        "owner": code.owner and _(code.owner),
        "deadline": counted(code.deadline, "business day") if code.deadline else None,
    }
    width = max(len(_(name)) for name in facts)
    for name, value in facts.items():
        if value:
            show(f"  {_(name):<{width}} {value}")


def _as_json(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "about": code.subject,
        **pick_camel(code, "name", "meaning", "section", "remedy", "severity", "owner"),
        "deadlineBusinessDays": code.deadline,
    }
