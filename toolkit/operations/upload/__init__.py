"""Send the files of a credentials file into the bucket: check each, send it, note that it is there.

::

    credentials_file    the lines of the file, each checked before anything is sent
    destinations        the hosts that files may be sent to
    local_files         where the file of a line is, and whether it may be sent at all
    journal             what was sent already, so that a killed upload goes on where it was
    sending             many files at once
    renewal             new credentials where those of a line ran out
"""

from toolkit.operations.upload.credentials_file import CredentialsLine, read_credentials, remove_expired
from toolkit.operations.upload.destinations import Destinations
from toolkit.operations.upload.local_files import UploadProblem
from toolkit.operations.upload.renewal import Renewal
from toolkit.operations.upload.sending import FailedUpload, Uploaded, upload_files

__all__ = [
    "CredentialsLine",
    "Destinations",
    "FailedUpload",
    "Renewal",
    "UploadProblem",
    "Uploaded",
    "read_credentials",
    "remove_expired",
    "upload_files",
]
