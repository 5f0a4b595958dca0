"""Good request bodies of the contract, to be broken one field at a time."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Json = dict[str, Any]

ABSENT: Any = object()

CLIENT: Json = {
    "externalId": "crm-4711",
    "cpf": "529.982.247-25",
    "rg": "12.345.678-9",
    "numberOnDealership": "3004567",
    "enrollment": "100200",
    "firstName": "Ana",
    "lastName": "Exemplo",
    "email": "ana@exemplo.com.br",
    "birthdate": "1980-02-01",
    "phoneNumber": "11987654321",
    "address": {
        "neighborhood": "Centro",
        "installationNumber": "00123456",
        "address": "Rua das Flores",
        "addressNumber": "100",
        "city": "São Paulo",
        "zipCode": "01310-100",
    },
}

UPLOAD: Json = {
    "fileName": "contratante.pdf",
    "fileFormat": "application/pdf",
    "type": "application/pdf",
    "evidenceType": "DOC_CONTRATANTE",
}


def changed(body: Json, field: str, value: Any) -> Json:
    """``body`` with another value for ``field`` (dotted where nested), or without it."""
    copy = deepcopy(body)
    *parents, name = field.split(".")
    place = copy
    for parent in parents:
        place = place[parent]
    if value is ABSENT:
        del place[name]
    else:
        place[name] = value
    return copy
