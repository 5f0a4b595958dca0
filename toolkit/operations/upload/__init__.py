"""Send the files of a credentials file into the bucket: check each, send it, note that it is there.

::

    credentials_file    the lines of the file, each checked before anything is sent, and a journal of those sent
    destinations        the hosts that files may be sent to
    local_files         where the file of a line is, and whether it may be sent at all
    sending             many files at once
    renewal             new credentials where those of a line ran out
"""
