"""The state of jobs in the database: one run for each slot, whoever starts it and however often.

::

    runs          take the run of a slot, hold it by a lease, note its steps, end it
    processes     which process holds a run, and whether it still lives
    watching      note slots that nobody started, and runs whose process died
    notices       notices to people, kept until they are delivered
    history       read runs, steps and notices, and which files are due to be deleted
"""
