"""The mode of the files that the toolkit writes for people: ``TOOLKIT_FILE_MODE``."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from toolkit.settings import file_mode_of


@contextmanager
def files_for_owner_and_group(environ: Mapping[str, str]) -> Iterator[None]:
    """Create files with the mode that ``environ`` asks for, and folders that the same people may enter.

    Kernels and other processes that are started meanwhile do so as well. Files with credentials, whole CPFs or
    rejected rows are their owner's only, whatever the mode.

    Raises:
        SettingsError: the mode is none.
    """
    mode = file_mode_of(environ)
    may_enter = (mode & 0o444) >> 2
    before = os.umask(0o777 & ~(mode | may_enter))
    try:
        yield
    finally:
        os.umask(before)
