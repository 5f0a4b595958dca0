"""The custody log: what happened to evidence, chained so that a change of the past shows.

::

    events          events that the toolkit records itself; triggers record the others (migration 0004)
    sealing         chain the events recorded since the last seal
    export          the sealed log as a file
    verification    whether such a file is what was sealed, without any database

Events are written in the transaction of what they tell; sealing comes later, so nobody ever waits for the chain.
"""

from toolkit.operations.prove.custody_log.events import (
    TELL_ISSUED,
    record_unmasking,
    tell_completed,
    tell_issued,
    tell_reissued,
)
from toolkit.operations.prove.custody_log.export import export_log
from toolkit.operations.prove.custody_log.sealing import newest_seal, seal_events
from toolkit.operations.prove.custody_log.verification import LogVerdict, verify_log

__all__ = [
    "TELL_ISSUED",
    "LogVerdict",
    "export_log",
    "newest_seal",
    "record_unmasking",
    "seal_events",
    "tell_completed",
    "tell_issued",
    "tell_reissued",
    "verify_log",
]
