"""The counts of rows of a service that are not as they should be, with their sentences and codes."""

import re
from typing import Final

FLAWS: Final = {
    "salesWithoutId": "Sales without an id, set aside: {:,}.",
    "salesRepeated": "Sales with an id that others have, set aside: {:,}.",
    "salesWithoutCreatedAt": "Sales without created_at, set aside: {:,}.",
    "recordsWithoutId": "Evidence records without an id, set aside: {:,}.",
    "recordsRepeated": "Evidence records with an id that others have, set aside: {:,}.",
    "recordsWithoutSaleOrTime": "Evidence records without sale_id or requested_at, set aside: {:,}.",
    "recordsOfNoSale": "Evidence records of no sale that is read: {:,}.",
    "recordsWithoutKey": "Evidence records without object_key: {:,}.",
    "keysRepeated": "Evidence records with an object_key that others have: {:,}.",
    "typesUnknown": "Evidence records with an evidence_type that the contract does not know: {:,}.",
    "groupsUnknown": "Sales with a utility_group that the contract does not know: {:,}.",
    "payersUnknown": "Sales that do not say whether the client pays: {:,}.",
    "timesInfinite": "Sales and evidence records with an infinite time: {:,}.",
    "timesInFuture": "Sales and evidence records with a time in the future (check its zone): {:,}.",
    "partnersAlike": "Sales whose partner others write with other capitals or blanks: {:,}.",
    "clientsRepeated": "Clients with an id that others have: {:,}.",
    "salesOfNoClient": "Sales of a client that is not read: {:,}.",
}
"""Each count of rows that cannot be used as they are, with its sentence."""

LEFT_OUT: Final = {
    "salesLeftOut": "Rows that the statement sales leaves out: {:,}.",
    "recordsLeftOut": "Rows that the statement records leaves out: {:,}.",
}
"""Rows of a statement's table that it does not yield: deleted ones, others, or NULLs in its filter."""

GONE: Final = "Sales that were known before and are gone: {:,}."

SENTENCES: Final = FLAWS | LEFT_OUT | {"salesGone": GONE}
"""The sentences of all."""

JUMPS: Final = {
    name: text[0].lower() + text[1:].removesuffix(": {:,}.")
    for name, text in (FLAWS | LEFT_OUT).items()
    if name not in {"typesUnknown", "groupsUnknown", "payersUnknown"}
}
"""The counts that become a finding when they jump, with its name. Of the others each sale has its own findings."""


def code_of(count: str) -> str:
    """Return the code of the finding about a count, such as ``RECORDS_OF_NO_SALE``."""
    return re.sub(r"(?=[A-Z])", "_", count).upper()
