"""Name the account that is signed in to this machine."""

import os
import pwd


def signed_in_account() -> str:
    """Return the name of the account that this process runs under, whatever the environment says about it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
