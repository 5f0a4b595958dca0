"""The history of schema ``audit``, oldest first in ``versions``."""
