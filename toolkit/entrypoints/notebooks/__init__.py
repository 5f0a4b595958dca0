"""The functions that notebooks call: each does one job on the database and bucket of the environment.

They take plain values, as a parameters cell holds them, and give an object that shows itself; its ``result``
is what the operation returned.

::

    load_clients, request_credentials, missing_evidence, job_history, one_sale, compare_moments, partner_scores,
    content_verification, load_sales, client_quality    one notebook each: the call and its display
    display, progress_line    figures, charts and tables, and a line of progress
    notebook_errors           the application context, paths, and errors without a traceback
"""

from toolkit.entrypoints.notebooks.client_quality import client_quality
from toolkit.entrypoints.notebooks.compare_moments import compare_moments
from toolkit.entrypoints.notebooks.content_verification import content_verification
from toolkit.entrypoints.notebooks.job_history import job_history
from toolkit.entrypoints.notebooks.load_clients import load_clients
from toolkit.entrypoints.notebooks.load_sales import load_sales
from toolkit.entrypoints.notebooks.missing_evidence import missing_evidence_report
from toolkit.entrypoints.notebooks.one_sale import one_sale
from toolkit.entrypoints.notebooks.partner_scores import partner_scores
from toolkit.entrypoints.notebooks.request_credentials import request_credentials

__all__ = [
    "client_quality",
    "compare_moments",
    "content_verification",
    "job_history",
    "load_clients",
    "load_sales",
    "missing_evidence_report",
    "one_sale",
    "partner_scores",
    "request_credentials",
]
