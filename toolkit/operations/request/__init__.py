"""Upload credentials: an evidence record in the database, and a signed form that lets its file be posted.

::

    single              credentials for one file, as the HTTP interface asks for them
    manifest            the rows of a manifest, each judged by the contract's rules
    existing_records    the sales of these rows, and their earlier records
    bulk                credentials for all rows at once, written into a file
    from_report         credentials for the evidence that a report lists as missing
"""
