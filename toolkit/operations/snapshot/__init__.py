"""Snapshots: everything that an audit reads, with its whole history, as Parquet files outside of the database.

::

    contents     the tables of a snapshot: their columns, and how their rows are read from PostgreSQL
    manifest     what an export wrote: its moment, the export before it, each file with its SHA-256
    export       write the rows observed since the export before
    reading      list exports, verify their files, find the files of a moment

An export holds no personal data: ids, times, codes, hashes. Keys of objects, which end with file names, are
replaced by keyed pseudonyms. Other tools read the Parquet files as they are.
"""
