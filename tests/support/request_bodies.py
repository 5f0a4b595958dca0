"""Good request bodies of the contract, those that its document shows, to be broken one field at a time."""

from copy import deepcopy
from typing import Any

from toolkit.http import documents

Json = dict[str, Any]

ABSENT = object()

CLIENT = documents.CLIENT_EXAMPLE
UPLOAD = dict(documents.DOCUMENT_EXAMPLE)


def changed(body, field, value):
    """``body`` with another value for ``field`` (dotted where nested), or without it."""
    copy = deepcopy(body)
    *parents, name = field.split(".")
    place = copy
    for parent in parents:
        place = place[parent]
    if value is ABSENT:
        del place[name]
    else:
        place[name] = value
    return copy
