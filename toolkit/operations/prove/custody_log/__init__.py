"""The custody log: what happened to evidence, chained so that a change of the past shows.

::

    events          events that the toolkit records itself; triggers record the others (migration 0004)
    sealing         chain the events recorded since the last seal
    export          the sealed log as a file
    live            whether the tables hold what the log tells of
    verification    whether such a file is what was sealed, without any database

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
from toolkit.operations.prove.custody_log.live import Difference, LiveVerdict, verify_live
from toolkit.operations.prove.custody_log.sealing import newest_seal, record_and_seal_report, seal_events
from toolkit.operations.prove.custody_log.verification import LogVerdict, verify_log

__all__ = [
    "RECORD_ISSUED",
    "Difference",
    "LiveVerdict",
    "LogVerdict",
    "export_log",
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
