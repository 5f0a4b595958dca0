"""Good request bodies of the contract, those that its document shows, to be broken one field at a time."""

from toolkit.http import documents

CLIENT = documents.CLIENT_EXAMPLE
UPLOAD = dict(documents.DOCUMENT_EXAMPLE)


def changed(body, field, value):
    """``body`` with another value for ``field`` (dotted where nested)."""
    parent, _, name = field.rpartition(".")
    return body | ({parent: body[parent] | {name: value}} if parent else {name: value})
