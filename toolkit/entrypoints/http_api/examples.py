"""Texts and examples of the OpenAPI document: the contract's words for each field, sample requests and answers."""

from collections.abc import Mapping
from typing import Any, Final

from toolkit.domain.fields import REQUIRED
from toolkit.entrypoints.http_api.answers import PROBLEMS, ErrorAnswer
from toolkit.operations.register.registration import MESSAGE
from toolkit.operations.request.single import REQUIRED_FOR_GROUP_D

Json = dict[str, Any]

MODELS: Final = {
    "Client": "The client to register: a person and the installation address.",
    "Address": "The installation unit.",
    "EvidenceRequest": "The file that is going to be uploaded.",
}

FIELDS: Final = {
    "Client": {
        "externalId": "Partner tracking id.",
        "cpf": "Brazilian taxpayer number.",
        "rg": "Identity document number.",
        "numberOnDealership": "Client code at the utility.",
        "enrollment": "Residence number.",
        "firstName": "Given name.",
        "lastName": "Family name.",
        "email": "E-mail address.",
        "birthdate": "Date of birth.",
        "phoneNumber": "Telephone number.",
    },
    "Address": {
        "neighborhood": "Neighbourhood.",
        "installationNumber": "Number printed on the bill.",
        "address": "Street or avenue.",
        "addressNumber": "Street number.",
        "city": "City.",
        "zipCode": "Postal code (CEP).",
    },
    "EvidenceRequest": {
        "fileName": "Name of the file to be uploaded: a plain name, without path, at most 255 bytes in UTF-8.",
        "fileFormat": "File format, of the kind that the evidence type demands.",
        "type": "Technical file type, of the kind that the evidence type demands.",
    },
}

CLIENT_REQUESTS: Final[Json] = {
    "client": {
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
}

CLIENT_REGISTERED: Final[Json] = {
    "message": MESSAGE,
    "clientId": "019a7c54-9d10-7b02-8f3c-5a1d2e3f4a5b",
    "addressId": "019a7c54-9d10-7c11-9e2d-6b7c8d9e0f1a",
}

UPLOAD_REQUESTS: Final[Json] = {
    "document": {
        "fileName": "contratante.pdf",
        "fileFormat": "application/pdf",
        "type": "application/pdf",
        "evidenceType": "DOC_CONTRATANTE",
    },
    "recording": {
        "fileName": "gravacao.mp3",
        "fileFormat": "audio/mpeg",
        "type": "audio/mpeg",
        "evidenceType": "POV",
    },
}

UPLOAD_CREDENTIALS: Final[Json] = {
    "id": "019a7c55-0f2e-7d33-a1b2-c3d4e5f60718",
    "url": "https://evidence.example.com/evidence",
    "fields": {
        "bucket": "evidence",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "...",
        "X-Amz-Date": "20260302T120000Z",
        "X-Amz-Security-Token": "...",
        "key": "evidences/2026/03/02/019a7c55-0f2e-7d33-a1b2-c3d4e5f60718/contratante.pdf",
        "Policy": "...",
        "X-Amz-Signature": "...",
    },
}

PROBES: Final[dict[str, Json]] = {
    "health": {"status": "ok"},
    "ready": {"status": "ready", "database": "ok", "bucket": "ok"},
}


def invalid(fields: Mapping[str, str], message: str = PROBLEMS[400].message) -> Json:
    """Return a 400 with these fields and their reasons."""
    errors = [{"field": name, "message": reason} for name, reason in fields.items()]
    return {"message": message, "code": 400, "invalidFieldsErrors": errors}


CLIENT_INVALID: Final[Json] = {
    "fields": invalid({"cpf": REQUIRED, "address.zipCode": "Must be a postal code (CEP): 8 digits, or 00000-000"}),
    "body": invalid({"body": "Must be valid JSON"}),
}

UPLOAD_INVALID: Final[Json] = {
    "evidenceType of a sale of group D": invalid({"evidenceType": REQUIRED}, REQUIRED_FOR_GROUP_D),
    "kind": invalid(dict.fromkeys(("fileFormat", "type"), "Must be application/pdf for KYC")),
    "body": invalid({"body": REQUIRED}),
    "sale id": invalid({"saleId": REQUIRED}),
}

NOT_READY: Final[Json] = {
    "message": PROBLEMS[503].message,
    "code": 503,
    "database": "unavailable",
    "bucket": "ok",
}


def problem(kind: ErrorAnswer) -> Json:
    """Return the body of a problem that lists no fields."""
    return {"message": kind.message} if kind.status == 401 else {"message": kind.message, "code": kind.status}
