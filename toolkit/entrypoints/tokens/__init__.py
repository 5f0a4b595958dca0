"""Bearer tokens: the keys that check them, the checks, and issuing them for a trial.

::

    keys            the keys that the environment gives, by their ids
    checking        check a token, and read what it claims about its bearer
    issuing         a token for trying the interface out

The contract leaves open how a token is obtained and what it claims ("Authentication"). Demanded here are
an expiry that is not far away and a subject: every evidence record carries who asked for it.
"""

from toolkit.entrypoints.tokens.checking import CLOCK_SKEW, Bearer, InvalidToken, TokenChecks
from toolkit.entrypoints.tokens.issuing import IssuedToken, issue
from toolkit.entrypoints.tokens.keys import TokenKeys

__all__ = ["CLOCK_SKEW", "Bearer", "InvalidToken", "IssuedToken", "TokenChecks", "TokenKeys", "issue"]
