"""The log tells of each request, and never holds personal data or secrets."""

import json
import subprocess
import sys
from datetime import datetime

from tests.contract.conftest import SUBJECT
from tests.support.request_bodies import CLIENT, UPLOAD
from tests.support.served_process import SECRET

MARK = "pessoa-marcada"
PERSONAL = CLIENT | {"cpf": "11144477735", "firstName": MARK, "email": f"{MARK}@exemplo.com.br"}
PERSONAL["phoneNumber"] = "11912345678"


def test_each_request_is_one_line_with_its_id(partner, stranger, service):
    answer = partner.post("/clients", json=CLIENT, headers={"X-Request-ID": "order-66"})

    assert answer.headers["x-request-id"] == "order-66"
    line = service.server.logged("request", requestId="order-66")
    assert (line["method"], line["route"], line["status"]) == ("POST", "/clients", 200)
    assert line["subject"] == SUBJECT
    assert line["milliseconds"] > 0
    assert datetime.fromisoformat(line["time"]).tzinfo is not None
    refused = stranger.get("/wp-admin").headers["x-request-id"]
    line = service.server.logged("request", requestId=refused)
    assert (line["status"], line["route"], line["subject"]) == (401, None, None)


def test_nothing_personal_and_no_secret_is_logged(partner, stranger, service):
    sale_id = service.sale(f"VND-{MARK}")
    token = partner.headers["authorization"].split()[1]
    partner.post("/clients", json=PERSONAL)
    partner.post(f"/clients?cpf={PERSONAL['cpf']}&token={token}", json={**PERSONAL, "cpf": MARK})
    partner.post("/clients", content=f'{{"cpf": "{MARK}"', headers={"Content-Type": "application/json"})
    credentials = partner.put(f"/sales/{sale_id}/evidences", json={**UPLOAD, "fileName": f"{MARK}.pdf"}).json()
    partner.put(f"/sales/{MARK}/evidences", json=UPLOAD)
    partner.get(f"/{MARK}/{PERSONAL['cpf']}")
    stranger.get(f"/{MARK}", headers={"User-Agent": MARK, "Referer": MARK, "X-Forwarded-For": MARK})
    stranger.get("/", headers={"Authorization": f"Bearer {MARK}"})
    last = partner.get("/nothing", headers={"X-Request-ID": PERSONAL["cpf"]}).headers["x-request-id"]
    service.server.logged("request", requestId=last)

    log = service.server.log_file.read_text()
    for line in log.splitlines():
        assert isinstance(json.loads(line), dict)
    never = (MARK, PERSONAL["cpf"], PERSONAL["phoneNumber"], token, token.rpartition(".")[2], SECRET, '127.0.0.1"')
    assert [text for text in never if str(text) in log] == []
    assert [name for name, value in credentials["fields"].items() if len(value) > 20 and value in log] == []


def test_lines_that_nobody_reads_are_dropped_and_counted_and_never_halt_a_request():
    program = """
import sys
from toolkit.http import logs
logs.start()
for number in range(30_000):
    logs.write("request", number=number)
print("answered", flush=True)
sys.stdin.readline()
"""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as writing:
        assert writing.stdout.readline() == b"answered\n"
        log = []
        while not log or log[-1]["event"] != "lost":
            log.append(json.loads(writing.stderr.readline()))
        writing.stdin.close()
    assert len(log) - 1 + log[-1]["lines"] == 30_000
    assert log[-1]["lines"] > 0
