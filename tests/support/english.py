"""English of the toolkit in what a Portuguese console says: words that only its English texts have."""

import re
from functools import cache

from tests.support.message_catalogue import messages
from toolkit.contract.codes import CODES
from toolkit.language import language

_WORD = re.compile(r"[^\W\d_]+")
_OF_NO_LANGUAGE = re.compile(
    r"""^Uso:.*|^\s+toolkit .*|^\s+[a-z][\w-]*(?=\s{2,})|\[[^\]]*\|[^\]]*\]|^\d{4}-\d\d-\d\dT.*|S3 server|"""
    r"""'[^']*'|"[^"]*"|“[^”]*”|`[^`]*`|\S*[\d_/@={}<>\\]\S*|"""
    r"\S*\w[.:]\w\S*|\S*[a-z][A-Z]\S*|--?[a-z][\w-]*|\b[A-Z]{2,}\b|\.\S+|\btoolkit(?: [a-z-]+)+"
)
"""Values in quotation marks, codes, paths, addresses, options, names of fields and commands, lines of the log."""


def english_in(said):
    """The lines of a text that hold such words, with the words."""
    found = {}
    for section in {each.section for each in CODES.values()} - {"not in the contract"}:
        said = said.replace(section, "")  # the contract is English
    for line in said.splitlines():
        words = _WORD.findall(_OF_NO_LANGUAGE.sub(" ", line))
        if english := [word for word in words if word.lower() in _english()]:
            found[line.strip()] = english
    return found


@cache
def _english():
    portuguese = language("pt-BR")
    texts = {text for message in messages() for text in ([message] if isinstance(message, str) else message)}
    return _words(texts) - _words(map(portuguese.text, texts)) - _NAMES


def _words(texts):
    return {word.lower() for text in texts for word in _WORD.findall(text)}


_NAMES = {"contact", "fields", "formats", "purpose", "readable", "sharing"}
"""Names of settings, fields, parameters and questions, which are words, too."""
