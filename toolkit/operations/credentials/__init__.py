"""Upload credentials: an evidence record in the database, and a signed form that lets its file be posted.

::

    single      for one file, as the HTTP interface asks for them
"""

from toolkit.operations.credentials.single import UploadCredentials, UploadLimits, request_upload

__all__ = ["UploadCredentials", "UploadLimits", "request_upload"]
