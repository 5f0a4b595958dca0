"""English sentences of the toolkit in what a Portuguese console says."""

import re
from functools import cache

from tests.support.message_catalogue import messages
from toolkit.language import language

_VALUE = re.compile(r"\{[^}]*\}|%\(\w+\)s|\n")
_SHORTEST = 10


def english_in(said):
    """The pieces of English messages, between their values, that stand in a text and in no Portuguese message."""
    return [piece for piece in _pieces() if piece in said]


@cache
def _pieces():
    portuguese = language("pt-BR")
    texts = {text for message in messages() for text in ([message] if isinstance(message, str) else message)}
    translated = "\n".join(map(portuguese.text, texts))
    pieces = {piece.strip(" .,:;()") for text in texts for piece in _VALUE.split(text)}
    return sorted(each for each in pieces if len(each) > _SHORTEST and " " in each and each not in translated)
