"""The custody log: the events of evidence, chained so that a later change of them shows.

::

    events          events that the toolkit records itself; triggers record the others (migration 0004)
    sealing         chain the events recorded since the last seal
    export          the sealed log as a file
    live            compare the tables with the log
    comparisons     the statements that find the differences
    moved_rows      observations that were moved to a snapshot, put beside the tables
    verification    verify such a file, without any database

Events are written in the transaction of what they tell; sealing comes later, so nobody ever waits for the chain.
"""
