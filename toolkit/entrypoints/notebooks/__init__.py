"""The functions that notebooks call: each does one job on the database and bucket of the environment.

They take plain values, as a parameters cell holds them, and give an object that shows itself; its ``result``
is what the operation returned.

::

    load_clients, request_credentials, missing_evidence, job_history    one notebook each: the call and its display
    display, progress_line    figures, charts and tables, and a line of progress
    notebook_errors           the application context, paths, and errors without a traceback
"""

from toolkit.entrypoints.notebooks.job_history import job_history
from toolkit.entrypoints.notebooks.load_clients import load_clients
from toolkit.entrypoints.notebooks.missing_evidence import missing_evidence_report
from toolkit.entrypoints.notebooks.request_credentials import request_credentials

__all__ = ["job_history", "load_clients", "missing_evidence_report", "request_credentials"]
