"""A sale as it is handed over by the system that it belongs to.

The contract shows the sale id and ``isClientFinancialResponsible``; the other fields are what the rules
and the reports need beside them.
"""

import re
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

from pydantic import BeforeValidator

from toolkit.contract.evidence import SALE_ID_MAX
from toolkit.contract.fields import (
    UNSTORABLE,
    OptionalText,
    RequestModel,
    RequiredText,
    invalid,
    optional_text,
    required_text,
)

YES: Final = frozenset({"true", "1", "yes", "sim", "s", "verdadeiro"})
NO: Final = frozenset({"false", "0", "no", "não", "nao", "n", "falso"})

DAY_FIRST: Final = re.compile(r"^([0-9]{2})/([0-9]{2})/([0-9]{4})")  # dates with slashes are day first, always


def is_possible_sale_id(sale_id: str) -> bool:
    """Tell whether a sale can have this id: one that no database can store is not looked up."""
    return 0 < len(sale_id) <= SALE_ID_MAX and not UNSTORABLE.search(sale_id)


def _check_sale_id(value: Any) -> str:
    text = required_text(value)
    if len(text) > SALE_ID_MAX:
        raise invalid("too_long", "Must have at most {} characters", SALE_ID_MAX)
    return text


def _check_client_id(value: Any) -> UUID | None:
    text = optional_text(value)
    if text is None:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise invalid("uuid", "Must be the UUID that the registration answered, or empty") from None


def _check_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = required_text(value).lower()
    if text not in YES | NO:
        raise invalid("boolean", "Must be true or false")
    return text in YES


def _check_moment(value: Any) -> datetime:
    text = required_text(value)
    try:
        return datetime.fromisoformat(DAY_FIRST.sub(r"\3-\2-\1", text))
    except ValueError:
        raise invalid("moment", "Must be a time such as 2026-11-20T18:00:00-03:00") from None


def _check_optional_moment(value: Any) -> datetime | None:
    return None if optional_text(value) is None else _check_moment(value)


SaleId = Annotated[str, BeforeValidator(_check_sale_id)]


class SaleRecord(RequestModel):
    """One sale; ``partner``, ``client_id`` and ``completed_at`` may be absent."""

    sale_id: SaleId
    client_id: Annotated[UUID | None, BeforeValidator(_check_client_id)] = None
    utility_group: RequiredText
    is_client_financial_responsible: Annotated[bool, BeforeValidator(_check_flag)]
    created_at: Annotated[datetime, BeforeValidator(_check_moment)]
    partner: OptionalText = None
    completed_at: Annotated[datetime | None, BeforeValidator(_check_optional_moment)] = None
