"""Upload credentials: an evidence record in the database, and a signed form that lets its file be posted.

::

    single              credentials for one file, as the HTTP interface asks for them
    manifest            the rows of a manifest, each judged by the contract's rules
    existing_records    the sales of these rows, and their earlier records
    bulk                credentials for all rows at once, written into a file
    from_report         credentials for the evidence that a report lists as missing
"""

from toolkit.operations.request.bulk import AlreadyUploaded, ManifestResult, Order, request_manifest
from toolkit.operations.request.from_report import LEFT_OUT_TEXTS, LeftOut, LeftOutReason, request_missing
from toolkit.operations.request.manifest import RejectedRow
from toolkit.operations.request.single import IssuedCredentials, UploadLimits, request_upload

__all__ = [
    "LEFT_OUT_TEXTS",
    "AlreadyUploaded",
    "IssuedCredentials",
    "LeftOut",
    "LeftOutReason",
    "ManifestResult",
    "Order",
    "RejectedRow",
    "UploadLimits",
    "request_manifest",
    "request_missing",
    "request_upload",
]
