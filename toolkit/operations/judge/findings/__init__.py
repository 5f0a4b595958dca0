"""The life of findings: first seen, resolved, reopened, waived for a time, and due by a day.

::

    history     the stretches of each finding's life, one transaction an audit
    changes     the difference between two moments, and the trend from day to day
    waivers     findings that are accepted for a time
    living      the findings of an audit, each with its life
"""
