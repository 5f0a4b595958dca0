"""The floor of the HTTP benchmark: bare Starlette on the toolkit's server, with the inserts of the two endpoints.

``python -m tests.benchmarks.http_bare PORT`` uses the database of ``DATABASE_URL``. No token, no rules, no log; as
many threads and connections as the real one, and SQLAlchemy as one would first write it.
"""

import os
import sys
from datetime import UTC, date, datetime

import anyio.to_thread
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolkit.database.tables import addresses, clients, custody_events, evidences, new_id
from toolkit.http.app import THREADS
from toolkit.http.server import run
from toolkit.intake.headings import FIELDS

RULES = {rule.name: rule for rule in FIELDS}


def main():
    engine = sa.create_engine(os.environ["DATABASE_URL"], pool_size=THREADS)

    def insert(*rows):
        with engine.begin() as connection:
            for table, row in rows:
                connection.execute(sa.insert(table), row)

    async def register(request):
        body = await request.json()
        client_id, address_id = new_id(), new_id()
        address = {"id": address_id, "client_id": client_id}
        address |= {RULES[f"address.{name}"].column: value for name, value in body.pop("address").items()}
        client = {RULES[name].column: value for name, value in body.items()}
        client |= {"id": client_id, "created_at": datetime.now(UTC), "birthdate": date(1980, 2, 1)}
        await anyio.to_thread.run_sync(insert, (clients, client), (addresses, address), limiter=limiter)
        return JSONResponse({"message": "", "clientId": str(client_id), "addressId": str(address_id)})

    async def upload(request):
        body = await request.json()
        evidence_id, now = new_id(), datetime.now(UTC)
        record = {"id": evidence_id, "sale_id": request.path_params["sale_id"], "requested_by": "bench"}
        record |= {"file_name": body["fileName"], "file_format": body["fileFormat"], "type": body["type"]}
        record |= {"evidence_type": body["evidenceType"], "requested_at": now, "expires_at": now}
        record |= {"object_key": f"evidences/{evidence_id}/{body['fileName']}"}
        detail = {"evidence": str(evidence_id), "evidenceType": body["evidenceType"]}
        event = {"kind": "ISSUED", "happened_at": now, "detail": detail}
        await anyio.to_thread.run_sync(insert, (evidences, record), (custody_events, event), limiter=limiter)
        return JSONResponse({"id": str(evidence_id)})

    limiter = anyio.CapacityLimiter(THREADS)
    routes = [
        Route("/clients", register, methods=["POST"]),
        Route("/sales/{sale_id}/evidences", upload, methods=["PUT"]),
    ]
    run(Starlette(routes=routes), "127.0.0.1", int(sys.argv[1]))


if __name__ == "__main__":
    main()
