"""Audits tell which rows of a service are not as they should be, and what changed since the last reading."""

import re
from enum import StrEnum
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
    "timesInfinite": "Sales and evidence records with an infinite time, or one before 1971: {:,}.",
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

SINCE_AUDIT: Final = {
    "salesGone": "Sales that were known before and are gone: {:,}.",
    "recordsGone": "Evidence records that were known before and are gone: {:,}.",
    "recordsMoved": "Evidence records that were of another sale before: {:,}.",
    "salesCreatedAnew": "Sales that had another client or created_at before: {:,}.",
}
"""The changes of rows since the audit before."""

SENTENCES: Final = FLAWS | LEFT_OUT | SINCE_AUDIT  # the sentences of all

JUMPS: Final = {
    name: text[0].lower() + text[1:].removesuffix(": {:,}.")
    for name, text in (FLAWS | LEFT_OUT).items()
    if name not in {"typesUnknown", "groupsUnknown", "payersUnknown"}
}
"""The counts that become a finding when they jump, with its name. Of the others each sale has its own findings."""


def code_of(count: str) -> str:
    """Return the code of the finding about a count, such as ``RECORDS_OF_NO_SALE``."""
    return re.sub(r"(?=[A-Z])", "_", count).upper()


class ServiceChange(StrEnum):
    """A change since the last reading, as the template of the sentence that an audit and its reports tell."""

    STATEMENTS = "The service is read by another service.sql than at the last reading."
    TABLE_UNREAD = "The table {} is no longer read."
    VIEW_UNREAD = "The view {} is no longer read."
    FUNCTION_UNREAD = "The function {} is no longer read."
    TABLE_NEW = "The table {} was not read before."
    VIEW_NEW = "The view {} was not read before."
    FUNCTION_NEW = "The function {} was not read before."
    VIEW_REPLACED = "The view {} was replaced by another one."
    FUNCTION_REPLACED = "The function {} was replaced by another one."
    POLICY_REPLACED = "The row level security of the table {} is another one."
    TABLE_REPLACED = "The table {} is another table of the same name than at the last reading."
    COLUMN_NEW = "The table {} has a new column {}."
    COLUMN_LOST = "The table {} has lost the column {}."
    COLUMN_REPLACED = "The column {} of the table {} is another column of the same name."
    COLUMN_CHANGED = "The column {} of the table {} is {}; it was {}."
    SALES_CHANGED = "{:,} of {:,} sales are read otherwise than at the last reading."
    RECORDS_CHANGED = "{:,} of {:,} evidence records are read otherwise than at the last reading."
    RESTORED = (
        "The database was restored from an older dump, which was noticed at {} UTC: what was written between the "
        "dump and the restore, such as withdrawals and waivers, is gone. Persons who were erased may be back: "
        "toolkit privacy replay. Find out what happened, and let two people confirm it: toolkit db confirm-restore"
    )
    TAKEN_BACK = (
        "The database was restored later from an older dump, which was noticed at {} UTC: what had been observed "
        "by this moment may be gone, and the answer may be another one than was given then."
    )
    JUMPED = "{}; {} at the last reading."  # the sentence of a count, without its full stop, and the count before
