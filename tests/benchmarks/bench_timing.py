"""Whether a partner can tell the sale of another from one that does not exist by how long the refusal takes.

Requests for both are sent in turn by chance, over one connection. ``z`` is the rank test of Mann and Whitney:
beyond 3 or so the answers differ by more than chance. The floor is that of two samples of ids that do not exist.
"""

import json
import random
import secrets
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import cycle
from uuid import UUID, uuid4

import numpy as np
import sqlalchemy as sa

from tests.benchmarks.measuring import own_home
from tests.support.request_bodies import UPLOAD
from tests.support.served_process import serving
from toolkit.database.tables import sales
from toolkit.http import tokens
from toolkit.kit.connection import Kit
from toolkit.settings import Settings

_REQUESTS = 1000
_SALES = 500


def main(scale):
    """Print a line per endpoint: the medians, their difference, and the rank test."""
    with own_home() as home:
        environ = {"TOOLKIT_HOME": str(home), "TOOLKIT_JWT_SECRET": secrets.token_urlsafe(32)}
        environ |= {"TOOLKIT_QUOTA_REQUESTS": "100000000", "TOOLKIT_UNASSIGNED_SALES": "none"}
        settings = Settings.from_environment(environ)
        names = [f"V-{uuid4()}" for _ in range(3 * _SALES)]
        there = {"utility_group": "A", "is_client_financial_responsible": True, "created_at": datetime.now(UTC)}
        with Kit(environ) as kit:
            with kit.database.transaction() as connection:
                theirs = [{**there, "id": each, "partner": "Sol"} for each in names[:_SALES]]
                own = {**there, "id": "V-LUZ", "partner": "Luz"}
                connection.execute(sa.insert(sales), [*theirs, own])
            found = kit.audit().sql("SELECT id FROM findings WHERE partner = 'Sol'")
            findings = found["id"].tolist()
        token = tokens.issue(settings, "crm", timedelta(days=1), datetime.now(UTC), partner="Luz").text
        beside = [[str(UUID(int=UUID(each).int ^ bit)) for each in findings] for bit in (1, 2)]  # in their order
        others = [names[:_SALES], names[_SALES : 2 * _SALES], names[2 * _SALES :]]
        gaps = [findings, *beside]
        print(f"{'':28}{'another’s':>12}{'absent':>9}{'difference':>12}{'z':>7}{'z of the floor':>16}")
        with serving(environ) as server:
            client = HTTPConnection("127.0.0.1", server.port)
            for method, path, ids, body in (
                ("GET", "/sales/{}/evidences", others, None),
                ("GET", "/sales/{}/completion", others, None),
                ("PUT", "/sales/{}/evidences", others, UPLOAD),
                ("POST", "/findings/{}/answers", gaps, {"answer": "sentAgain"}),
                ("GET", "/findings?after={}", gaps, None),
            ):
                times = _times(client, token, method, path, ids, body, max(100, round(_REQUESTS * scale)))
                there_, none = (np.median(each) * 1e6 for each in times[:2])
                told = f"{there_:>9.0f} us{none:>6.0f} us{there_ - none:>9.1f} us"
                print(f"{method:5}{path:23}{told}{_z(*times[:2]):>7.1f}{_z(*times[1:]):>16.1f}", flush=True)


def _times(client, token, method, path, ids, body, count):
    """Return the seconds of ``count`` answers for each list of ids."""
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body)
    kinds = [*range(len(ids))] * count
    random.Random(1).shuffle(kinds)
    asked = [cycle(each) for each in ids]
    times = [[] for _ in ids]
    statuses = set()
    for kind in kinds:
        url = path.format(next(asked[kind]))
        began = time.perf_counter()
        client.request(method, url, content, head)
        answer = client.getresponse()
        answer.read()
        times[kind].append(time.perf_counter() - began)
        statuses.add(answer.status)
    assert len(statuses) == 1, statuses
    return times


def _z(one, other):
    """Return how many deviations the ranks of the first are above chance; no two times are equal."""
    ranks = np.argsort(np.argsort([*one, *other])) + 1
    n, m = len(one), len(other)
    return float((ranks[:n].sum() - n * (n + m + 1) / 2) / np.sqrt(n * m * (n + m + 1) / 12))
