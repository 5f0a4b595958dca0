"""Scheduled jobs: each logical date once, from where an earlier start stopped; people are told what was missed.

::

    definitions    a jobs.toml: schedules, steps, limits, dates counted from the logical date
    runs           the history: one row for each job and logical date, held by a lease
    running        one start: its steps, the files of each, how it ends
    notices        e-mail and webhook

Two libraries were tried on the same tests in place of this room. DBOS keeps the steps of a workflow. But a
start that is a process of its own shares its executor id with the others, and then a second start does a step
again while the first is doing it; or it has an id of its own, and then nobody goes on with what it left when it
was killed. After an upgrade nobody goes on with a killed run either. procrastinate does the finished steps of a
killed job again, half a minute later at the earliest. Neither tells which dates were missed. With a lease and
an account of dates beside them, what is left for them to do is a list of finished steps.
"""
