"""The client: a person and the installation address (contract, "Client" and "Address")."""

from toolkit.domain.fields import (
    Birthdate,
    Cep,
    Cpf,
    Email,
    InstallationNumber,
    Neighborhood,
    OptionalText,
    Phone,
    RequiredText,
)
from toolkit.domain.requests import RequestModel


class Address(RequestModel):
    """The installation unit."""

    neighborhood: Neighborhood
    installation_number: InstallationNumber
    address: RequiredText
    address_number: RequiredText
    city: RequiredText
    zip_code: Cep


class Client(RequestModel):
    """A valid client, normalised: CPF, CEP and phone as digits, blank optional fields as ``None``."""

    external_id: OptionalText = None
    cpf: Cpf
    rg: OptionalText = None
    number_on_dealership: RequiredText
    enrollment: RequiredText
    first_name: RequiredText
    last_name: RequiredText
    email: Email = None
    birthdate: Birthdate
    phone_number: Phone = None
    address: Address
