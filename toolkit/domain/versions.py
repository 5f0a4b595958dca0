"""The version of the toolkit and of the rules, so that a result tells what it was judged by."""

import json
from hashlib import sha256
from importlib.metadata import version

from toolkit.domain.evidence import KIND_OF
from toolkit.domain.rules import COMBINED, GROUP_RULES, REASON_OF, REPLACED_BY_COMBINED, REPLACES_ALL


def toolkit_version() -> str:
    """Return the version of this toolkit."""
    return version("evidence-toolkit")


def rules_fingerprint() -> str:
    """Return twelve hexadecimal digits over the rules as data."""
    groups = {
        group: [[requirement.accepts, requirement.only_with_separate_payer] for requirement in requirements]
        for group, requirements in GROUP_RULES.items()
    }
    rules = [groups, REPLACES_ALL, COMBINED, REPLACED_BY_COMBINED, list(REASON_OF.items()), KIND_OF]
    return sha256(json.dumps(rules).encode()).hexdigest()[:12]
