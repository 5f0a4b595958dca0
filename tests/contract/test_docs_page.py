"""The page of Swagger UI that lets people try the interface out, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.conftest import Service, issue
from tests.support.browser import needs_browser, well_behaved

pytestmark = needs_browser


@pytest.fixture
def page(browser: Any, service: Service) -> Iterator[Any]:
    with well_behaved(browser, service.server.url) as opened:
        opened.goto(f"{service.server.url}/docs")
        opened.wait_for_selector("#operations-default-registerClient")
        yield opened


def test_all_operations_are_shown(page: Any) -> None:
    assert page.locator(".opblock").count() == 5


def test_a_client_is_registered_from_the_page(page: Any, service: Service) -> None:
    page.locator("button.authorize").first.click()
    page.locator(".auth-container input").fill(issue(service.environ))
    page.locator(".auth-btn-wrapper button.authorize").click()
    page.locator(".auth-btn-wrapper button.btn-done").click()
    box = page.locator("#operations-default-registerClient")
    box.locator(".opblock-summary-control").click()
    box.locator("button.try-out__btn").click()
    box.locator("button.execute").click()

    assert "addressId" in box.locator(".live-responses-table .response .response-col_description").inner_text()
