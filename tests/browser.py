"""A real browser for pages, where one is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_CHROMIUM = shutil.which("chromium")

needs_browser = pytest.mark.skipif(
    _CHROMIUM is None, reason="Chromium is not installed; .ci/run installs it (package chromium)"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """Chromium without a window; it looks for nothing on the network by itself."""
    from playwright.sync_api import sync_playwright  # not needed where there is no browser

    flags = ["--disable-background-networking", "--disable-component-update", "--disable-gpu", "--no-first-run"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium refuses its sandbox to root
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_CHROMIUM, args=flags)
        yield opened
        opened.close()
