"""What a text tells of the people of the sample, and of secrets."""

import json
import re
from html import unescape

from toolkit.contract.people import secret_values
from toolkit.samples.dataset import read_clients


def leaks_in(told, environ, credentials):
    """Return the personal data and the secrets that stand in a text, also where it is escaped for JSON or HTML."""
    told = unescape(re.sub(r"\\u([0-9a-f]{4})", lambda escaped: chr(int(escaped[1], 16)), told))
    secrets = {"geheim", *secret_values(environ)}
    for line in "".join(path.read_text() for path in credentials).splitlines():
        fields = json.loads(line)["fields"]
        secrets |= {value for name, value in fields.items() if name not in {"bucket", "key", "X-Amz-Algorithm"}}
    people = [each for name in ("clients.csv", "clients.xlsx") for part in read_clients(name) for each in part]
    for person in people:
        secrets |= {f"{person['first_name']} {person['last_name']}"}
        secrets |= {person[each] for each in ("email", "phone_number", "rg")}
    digits = set(re.findall(r"\d{11}", re.sub(r"(?<=\d)[.-](?=\d)", "", told)))
    found = {secret for secret in secrets if secret and secret.upper() in told.upper()}
    return sorted(found | digits & {person["cpf"] for person in people})
