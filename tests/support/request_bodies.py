"""Good request bodies of the contract, those that its document shows, to be broken one field at a time."""

from copy import deepcopy

from toolkit.http import documents

CLIENT = documents.CLIENT_EXAMPLE
UPLOAD = dict(documents.DOCUMENT_EXAMPLE)


def changed(body, field, value):
    """``body`` with another value for ``field`` (dotted where nested)."""
    copy = deepcopy(body)
    *parents, name = field.split(".")
    place = copy
    for parent in parents:
        place = place[parent]
    place[name] = value
    return copy
