"""Verify the contents of evidence files: that they are whole and of the declared kind, and their hashes.

::

    verification    every object version that nobody verified, once
    fetching        one version of an object, fetched and looked at
    queue           the versions that wait, the decisive ones first, and the budget
    inspector       a process in bounds that looks at files nobody trusts
    inspection      what it does there: kind, and what is wrong
    pdf, audio      the two kinds
    containers      what audio containers say about their own length

The package itself imports nothing, neither database nor bucket: the process that looks at files starts with it.
"""
