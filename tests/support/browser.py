"""A real browser for pages, where one is installed."""

import os
import shutil
from contextlib import contextmanager

import pytest

from tests.support.waiting import PATIENCE

_CHROMIUM = shutil.which("chromium")

needs_browser = pytest.mark.skipif(
    _CHROMIUM is None, reason="Chromium is not installed; .ci/run installs it (package chromium)"
)


@contextmanager
def chromium():
    """Chromium without a window; it looks for nothing on the network by itself."""
    from playwright.sync_api import sync_playwright  # not needed where there is no browser

    flags = ["--disable-background-networking", "--disable-component-update", "--disable-gpu", "--no-first-run"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium refuses its sandbox to root
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=_CHROMIUM, args=flags, timeout=PATIENCE * 1000)
        yield opened
        opened.close()


@contextmanager
def well_behaved(browser, *own, **options):
    """A page that complains of nothing and asks nobody but addresses that begin with one of its ``own``."""
    opened, complaints, requests = browser.new_page(**options), [], []
    opened.set_default_timeout(PATIENCE * 1000)
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    yield opened
    # A browser writes each refused request to the console; that is no fault of the page.
    assert [text for text in complaints if "the server responded with a status of" not in text] == []
    assert [url for url in requests if not url.startswith((*own, "data:"))] == []
    opened.close()
