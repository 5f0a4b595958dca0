"""Jobs that a scheduler starts: their definitions, their slots, and how their runs end.

::

    definitions      what a jobs.toml says: jobs, steps, limits
    schedules        slots: the times at which a job is due, in the zone of the office
    relative_dates   {yesterday} and its like, counted from a slot
    outcomes         states of a run, and the codes of its failures
"""
