"""The counts of rows of a service that are not as they should be, with their sentences and codes."""

import re
from typing import Final

FLAWS: Final = {
    "salesWithoutId": "{:,} sales have no id and were set aside.",
    "salesRepeated": "{:,} sales have an id that others have, too, and were set aside.",
    "salesWithoutCreatedAt": "{:,} sales have no created_at and were set aside.",
    "recordsWithoutId": "{:,} evidence records have no id and were set aside.",
    "recordsRepeated": "{:,} evidence records have an id that others have, too, and were set aside.",
    "recordsWithoutSaleOrTime": "{:,} evidence records have no sale_id or requested_at and were set aside.",
    "recordsOfNoSale": "{:,} evidence records name no sale that is read.",
    "recordsWithoutKey": "{:,} evidence records have no object_key.",
    "keysRepeated": "{:,} evidence records have an object_key that others have, too.",
    "typesUnknown": "{:,} evidence records have an evidence_type that the contract does not know.",
    "groupsUnknown": "{:,} sales have a utility_group that the contract does not know.",
    "payersUnknown": "{:,} sales do not say whether the client pays.",
    "timesInfinite": "{:,} sales or evidence records have an infinite time.",
    "timesInFuture": "{:,} sales or evidence records have a time in the future: is its zone right?",
    "partnersAlike": "{:,} sales name a partner that others name with other capitals or blanks.",
    "clientsRepeated": "{:,} clients have an id that others have, too.",
    "salesOfNoClient": "{:,} sales name a client that is not read.",
}
"""Each count of rows that cannot be used as they are, with its sentence."""

LEFT_OUT: Final = {
    "salesLeftOut": "{:,} rows are left out by the statement sales.",
    "recordsLeftOut": "{:,} rows are left out by the statement records.",
}
"""Rows of a statement's table that it does not yield: deleted ones, others, or NULLs in its filter."""

GONE: Final = "{:,} sales that were known before are gone."

SENTENCES: Final = FLAWS | LEFT_OUT | {"salesGone": GONE}
"""The sentences of all."""

JUMPS: Final = {
    "salesWithoutId": "sales without an id",
    "salesRepeated": "sales with an id that others have",
    "salesWithoutCreatedAt": "sales without the time of their creation",
    "recordsWithoutId": "evidence records without an id",
    "recordsRepeated": "evidence records with an id that others have",
    "recordsWithoutSaleOrTime": "evidence records without a sale or a time",
    "recordsOfNoSale": "evidence records of no sale",
    "recordsWithoutKey": "evidence records without a key",
    "keysRepeated": "evidence records with a key that others have",
    "timesInfinite": "infinite times",
    "timesInFuture": "times in the future",
    "partnersAlike": "partners whose names differ in capitals or blanks",
    "clientsRepeated": "clients with an id that others have",
    "salesOfNoClient": "sales of a client that is not read",
    "salesLeftOut": "sales that the statement leaves out",
    "recordsLeftOut": "evidence records that the statement leaves out",
}
"""The counts that become a finding when they jump, with its name. Of the others each sale has its own findings."""


def code_of(count: str) -> str:
    """Return the code of the finding about a count, such as ``RECORDS_OF_NO_SALE``."""
    return re.sub(r"(?=[A-Z])", "_", count).upper()
