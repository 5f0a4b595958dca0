"""Translate the codes of another system into the contract's, by its own comments or by plain names."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from toolkit.domain.evidence import EvidenceType, UtilityGroup
from toolkit.storage.service_map.draft.vocabulary import GROUPS, LISTS, PAYER, tokens, words

_IS: Final = r"\s*(?:=>|->|→|=|:|–|—|-)\s*"
_PAIR: Final = re.compile(rf"([\w.+]+(?:-[\w.+]+)*){_IS}((?:(?!\s+[A-Z0-9]{{1,3}}(?:=|:|-)\s*\w)[^,;|\n])+)")

_HEADING: Final = re.compile(rf"^\s*[^\W\d_][^:;,=\d]{{2,}}:\s*(?=[\w.+]{{1,12}}{_IS}\w)")
"""A word before the first code, as in ``Type: 1 = A``."""
_BRACKETS: Final = re.compile(r"[{}\[\]]")
_NUMBER: Final = re.compile(r"[0-9]{1,3}")

_EXACT: Final = {"".join(words(each.value)): each for each in EvidenceType}
_ANYBODY: Final = {"person", "pessoa", "persona"}
_OWN: Final = {"client", "same"}
_PLACE: Final = {"key", "path", "file", "folder", "name", "id", "uuid"}
_SAY_NOTHING: Final = {"o", "a", "sale", "installation", "conta", "fatura", "account", "flag"}


def stated(comment: str) -> dict[str, str]:
    """Return the codes that a comment explains, as ``1 = A, 2 = B`` or as ``a: 1, b: 2``."""
    listed = _BRACKETS.sub(",", _HEADING.sub("", comment))
    pairs = {code: meaning.strip(" .)") for code, meaning in _PAIR.findall(listed)}
    turned = {
        code: meaning
        for meaning, code in pairs.items()
        if _NUMBER.fullmatch(code) and not _NUMBER.fullmatch(meaning)
    }
    return turned or pairs


def group(text: str) -> str | None:
    """Return the utility group that a text names."""
    found = GROUPS.fullmatch(text.strip())
    return (found[1] or found[2]).upper() if found else None


def evidence_type(text: str) -> str | None:
    """Return the evidence type that a text names, by the contract's word or by words in English or Portuguese."""
    # Without the words that say where a file is, as in ``pov_key``.
    without_place = [word for word in words(text) if not {*tokens(word)} & _PLACE]
    exact = _EXACT.get("".join(words(text))) or _EXACT.get("".join(without_place))
    if exact is not None:
        return exact.value
    spelled, meant = set(words(text)), set(tokens(text))
    if spelled & LISTS["kyc"]:
        return EvidenceType.KYC
    payer = bool(meant & PAYER)
    client = "client" in tokens("_".join(spelled - _ANYBODY if payer else spelled))
    if payer and not client and spelled & LISTS["and"]:
        return None  # of the payer and somebody else, or two things of the payer
    if spelled & LISTS["audio"] and client != payer:
        return EvidenceType.AUT if payer else EvidenceType.POV
    both = bool(spelled & LISTS["both"]) or (client and payer)
    if "document" in meant or spelled & LISTS["papers"]:
        if both:
            return EvidenceType.DOC_CONTRATANTE_E_RESPONSAVEL_FINANCEIRO
        if payer:
            return EvidenceType.DOC_RESPONSAVEL_FINANCEIRO
        return EvidenceType.DOC_CONTRATANTE if client else None
    return None


def flag(text: str) -> bool | None:
    """Return the truth value that a text stands for."""
    plain = text.strip().lower()
    return True if plain in LISTS["yes"] else False if plain in LISTS["no"] else None


def flags(values: Iterable[str]) -> dict[str, bool]:
    """Return the truth value of each spelling of a flag, one that no row has yet included; empty for no flag."""
    seen = {value.strip() for value in values}
    for yes, no in _PAIRS:
        if seen and seen <= {yes, no}:
            return {yes: True, no: False}
    truths = {value: truth for value in sorted(seen) if (truth := flag(value)) is not None}
    return truths if len(truths) == len(seen) else {}


_PAIRS: Final = [
    pair.split("/") for pair in ("S/N", "Y/N", "1/0", "-1/0", "J/N", "T/F", "true/false", "t/f", "X/")
]


def payer(text: str) -> bool | None:
    """Tell whether a text says that the client pays: yes, or a word for the client."""
    plain, said = flag(text), set(tokens(text))
    if plain is not None:
        return plain
    if said & {"other", "partner", "nao", "not"}:
        return False
    return True if said & _OWN and said <= _OWN | PAYER | _SAY_NOTHING else None


MEANINGS: Final[dict[str, tuple[Callable[[str], str | None], Iterable[str]]]] = {
    "utility_group": (group, list(UtilityGroup)),
    "evidence_type": (evidence_type, list(EvidenceType)),
}
"""The function that reads a code of each column, and the values that need no code."""


def decoded(column: str, values: Iterable[str], comment: str) -> tuple[dict[str, str], list[str]]:
    """Return the contract's value for each code that differs from it, and the codes that nothing explains.

    What the comment says comes first; a code that it explains is kept although no row has it yet.
    """
    understand, known = MEANINGS[column]
    said = {code: understand(meaning) for code, meaning in stated(comment).items()}
    codes = {code: meaning for code, meaning in said.items() if meaning is not None and code != meaning}
    unknown = []
    for value in values:
        plain = value.rstrip()
        if plain in codes or plain in known:
            continue
        meaning = understand(plain)
        if meaning is None:
            unknown.append(plain)
        else:
            codes[plain] = meaning
    return codes, unknown
