"""The work of the toolkit, grouped by its stages: arguments in, values out, no globals.

::

    register    clients and sales enter, one by one or from spreadsheets
    request     upload credentials: an evidence record and a signed form
    upload      files go into the bucket
    observe     what the service and the bucket hold is kept with the time it was seen
    verify      the bytes of the files, and their integrity
    judge       the audit, completion of a sale, withdrawal of a record
    prove       the custody log

Operations are given their database, bucket and clock; only ``toolkit.entrypoints`` assembles them.
"""

from toolkit.domain.clock import Clock

__all__ = ["Clock"]
