"""Masks for personal data in reports, logs and executed notebooks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unmasking:
    """A request to see personal data: the account that is signed in and its reason, for the custody log."""

    account: str
    reason: str


def mask_cpf(cpf: str) -> str:
    """``***.456.789-**``, the usual mask, for the 11 digits of a CPF; anything else is hidden whole."""
    if len(cpf) != 11 or not (cpf.isascii() and cpf.isdigit()):
        return "***"
    return f"***.{cpf[3:6]}.{cpf[6:9]}-**"


def mask_text(text: str) -> str:
    """Return the first character and three dots, so that a person can tell rows apart and no more."""
    return f"{text[:1]}..." if text else ""
