"""The page that lets people try the interface out, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import needs_browser, well_behaved
from tests.contract.bodies import CLIENT
from tests.contract.conftest import Service, issue

pytestmark = needs_browser


@pytest.fixture
def page(browser: Any, service: Service) -> Iterator[Any]:
    with well_behaved(browser, service.server.url) as opened:
        opened.goto(f"{service.server.url}/docs")
        opened.wait_for_selector("#registerClient")
        yield opened


def send(page: Any, operation: str) -> tuple[str, dict[str, Any]]:
    """Press the button of an operation; its status and body."""
    box = page.locator(f"#{operation}")
    box.get_by_role("button", name="Send").click()
    text = box.locator("[role=status] + pre:not([hidden])").inner_text()
    return box.get_by_role("status").inner_text(), json.loads(text.partition("\n\n")[2])


def opened(page: Any, operation: str) -> Any:
    box = page.locator(f"#{operation}")
    box.locator("summary").click()
    return box


def test_all_operations_are_shown_with_their_answers(page: Any) -> None:
    assert page.locator("details").count() == 5
    box = opened(page, "registerClient")
    assert "address.zipCode" in box.inner_text()
    assert "invalidFieldsErrors" in box.inner_text()


def test_a_client_is_registered_from_the_page(page: Any, service: Service) -> None:
    box = opened(page, "registerClient")
    status, _ = send(page, "registerClient")
    assert status == "401"

    page.fill("#token", issue(service.environ))
    status, body = send(page, "registerClient")
    assert (status, set(body)) == ("200", {"message", "clientId", "addressId"})

    box.locator("textarea").fill(json.dumps({**CLIENT, "cpf": None}))
    status, body = send(page, "registerClient")
    assert (status, body["invalidFieldsErrors"]) == ("400", [{"field": "cpf", "message": "Required"}])


def test_credentials_are_requested_from_the_page(page: Any, service: Service) -> None:
    service.sale("página / ção")
    box = opened(page, "requestUploadCredentials")
    page.fill("#token", issue(service.environ))
    box.get_by_label("saleId").fill("página / ção")
    box.get_by_label("Example").select_option("recording")

    status, body = send(page, "requestUploadCredentials")

    assert (status, set(body)) == ("200", {"id", "url", "fields"})


def test_the_token_is_not_kept(page: Any) -> None:
    page.fill("#token", "secret")
    page.reload()

    assert page.input_value("#token") == ""
