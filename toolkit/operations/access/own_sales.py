"""Limit SQL statements to the sales that a requester may act on."""

from typing import Any, Final

from toolkit.domain.partners import PartnerAccess, UnassignedSales
from toolkit.storage.tables import partner_subjects, sales

OWN_SALE: Final = f"""
    acting AS (
        SELECT CASE
            WHEN :is_operator THEN NULL
            ELSE coalesce(
                CAST(:named_partner AS text),
                (SELECT partner FROM {partner_subjects} WHERE subject = :requested_by AND revoked_at IS NULL),
                CASE WHEN NOT EXISTS (SELECT FROM {partner_subjects} WHERE subject = :requested_by)
                     THEN CAST(:requested_by AS text) END
            )
        END AS partner
    ),
    own_sale AS (
        SELECT sale.id, sale.utility_group, acting.partner AS acting_partner
        FROM {sales} AS sale, acting
        WHERE sale.id = :sale_id
          AND (:is_operator
               OR sale.partner = acting.partner
               OR (sale.partner IS NULL AND acting.partner IS NOT NULL AND :takes_unassigned))
    )
"""  # noqa: S608  # made of the names of our tables
"""Parts of a WITH clause: ``own_sale`` holds the sale where the requester may act on it, else nothing.

A subject whose every partner was revoked acts for none, and no sale is its own.
"""


def own_sale_parameters(access: PartnerAccess | None, requested_by: str, sale_id: str) -> dict[str, Any]:
    """Return the parameters of ``OWN_SALE``; without ``access`` the requester is an operator, who may see all."""
    return {
        "is_operator": access is None,
        "named_partner": access.partner if access is not None else None,
        "takes_unassigned": access is not None and access.unassigned is UnassignedSales.ANY,
        "requested_by": requested_by,
        "sale_id": sale_id,
    }
