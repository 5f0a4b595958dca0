"""The state of jobs in the database: one run for each slot, whoever starts it and however often.

::

    runs          take the run of a slot, hold it by a lease, note its steps, end it
    processes     which process holds a run, and whether it still lives
    watching      note slots that nobody started, and runs whose process died
    notices       what people are to be told, kept until it is delivered
    history       runs, steps and notices as they are read
    retention     files that are due to be deleted
"""
