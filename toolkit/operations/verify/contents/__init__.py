"""Verify the contents of evidence files: that they are whole and of the declared kind, and their hashes.

::

    verification    every object version that nobody verified, once
    queue           the versions that wait, the decisive ones first, and the budget
    inspector       one version of an object, fetched and looked at by a process in bounds: nobody trusts it
    inspection      what it does there: kind, and what is wrong
    pdf, audio      the two kinds
    containers      what audio containers say about their own length

The package itself imports nothing, neither database nor bucket: the process that looks at files starts with it.
"""
