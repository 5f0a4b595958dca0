"""The custody log: the events of evidence, chained so that a later change of them shows.

::

    events          events that the toolkit records itself; triggers record the others (migration 0004)
    sealing         chain the events recorded since the last seal
    export          the sealed log as a file
    live            compare the tables with the log
    verification    verify such a file, without any database

Events are written in the transaction of what they tell; sealing comes later, so nobody ever waits for the chain.
"""

from toolkit.operations.prove.custody_log.events import (
    RECORD_ISSUED,
    record_completion,
    record_issued,
    record_reissued,
    record_unmasking,
)
from toolkit.operations.prove.custody_log.export import export_log
from toolkit.operations.prove.custody_log.live import (
    Epoch,
    LiveVerdict,
    has_seal,
    newest_epoch,
    verify_live,
)
from toolkit.operations.prove.custody_log.sealing import newest_seal, record_and_seal_report, seal_events
from toolkit.operations.prove.custody_log.verification import Difference, LogVerdict, verify_log

__all__ = [
    "RECORD_ISSUED",
    "Difference",
    "Epoch",
    "LiveVerdict",
    "LogVerdict",
    "export_log",
    "has_seal",
    "newest_epoch",
    "newest_seal",
    "record_and_seal_report",
    "record_completion",
    "record_issued",
    "record_reissued",
    "record_unmasking",
    "seal_events",
    "verify_live",
    "verify_log",
]
