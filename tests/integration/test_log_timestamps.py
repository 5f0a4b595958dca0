"""An authority stamps the states of the custody log: here one that openssl makes, on loopback."""

import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.integration.test_custody_proof import needs_openssl
from tests.integration.test_log_witness import sealed  # noqa: F401  # a fixture
from tests.support.scripted_server import Answer, scripted
from tests.support.uploaded_sales import rows
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.log.others import ask_authority, stamped_at

pytestmark = needs_openssl

CONFIG = """
[tsa]
dir = {0}
serial = {0}/serial
crypto_device = builtin
signer_cert = {0}/tsa.pem
signer_key = {0}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ess_cert_id_alg = sha256
"""
STAMPS = "basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=critical,timeStamping\n"
REPLY = ("ts", "-reply", "-config", "config", "-section", "tsa", "-queryfile", "query", "-out", "reply")


def openssl(*arguments, cwd):
    return subprocess.run(["openssl", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)


def made_authority(place, name):
    """Make a root and a certificate that it signed for time stamps."""
    place.mkdir()
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")
    openssl(*new, "-subj", f"/CN={name}", "-keyout", "root.key", "-out", "root.pem", cwd=place)
    ask = ("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name} stamps")
    openssl(*ask, "-keyout", "tsa.key", "-out", "tsa.csr", cwd=place)
    (place / "extensions").write_text(STAMPS)
    sign = ("x509", "-req", "-in", "tsa.csr", "-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial")
    openssl(*sign, "-days", "20", "-extfile", "extensions", "-out", "tsa.pem", cwd=place)
    (place / "serial").write_text("01\n")
    (place / "config").write_text(CONFIG.format(place))
    return place


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """The folder of an authority, and its address."""
    place = made_authority(tmp_path_factory.mktemp("tsa") / "one", "Authority")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):  # the name that http.server calls
            query = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/other":  # it stamps another hash than it was given
                query = re.sub(rb"\x04\x20.{32}", b"\x04\x20" + b"x" * 32, query, count=1, flags=re.DOTALL)
            (place / "query").write_bytes(query)
            openssl(*REPLY, cwd=place)
            self.send_response(200)
            self.end_headers()
            self.wfile.write((place / "reply").read_bytes())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield place, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_report_is_stamped_and_anybody_checks_it(sealed, authority, database, run, tmp_path):  # noqa: F811
    kit, _, environ = sealed
    place, url = authority
    reports = tmp_path / "reports"
    kit.audit(sync=False).report(reports, formats="csv")
    verify = ("log", "verify", str(reports), "--tsa", str(place / "root.pem"))
    assert "time        FAILED     There is no time stamp" in run(*verify, ends=3).out
    told = run("log", "timestamp", "--url", url, "--beside", str(reports), within=environ).out
    assert "entries was stamped at 20" in told
    assert "time        holds      Stamped at 20" in run(*verify).out
    check = ("ts", "-verify", "-data", "checkpoint", "-in", "checkpoint.tsr", "-CAfile", place / "root.pem")
    assert "Verification: OK" in openssl(*check, "-untrusted", place / "tsa.pem", cwd=reports).stdout
    [(detail,)] = rows(database, "SELECT detail FROM audit.custody_events WHERE kind = 'TIMESTAMPED'")
    assert set(detail) == {"size", "token"}

    # An entry that says a later time than the stamp: the clock of who wrote it was wrong, or turned.
    entry = (reports / "entry.json").read_bytes()
    (reports / "entry.json").write_bytes(re.sub(rb'"at":"\d+', b'"at":"2999', entry))
    assert "time        FAILED     The entry says that it is of 2999" in run(*verify, ends=3).out
    (reports / "entry.json").write_bytes(entry)

    # A stamp over another hash, which somebody else asked for, holds as well.
    ask = ("ts", "-query", "-data", reports / "checkpoint", "-sha512", "-cert", "-out", "query")
    openssl(*ask, cwd=place)
    openssl(*REPLY, cwd=place)
    kept = (reports / "checkpoint.tsr").read_bytes()
    (reports / "checkpoint.tsr").write_bytes((place / "reply").read_bytes())
    assert "time        holds      Stamped at 20" in run(*verify).out
    (reports / "checkpoint.tsr").write_bytes(kept)

    # The token of another bundle, another authority's root, and a token that nothing here can read.
    note = (reports / "checkpoint").read_bytes()
    token = (reports / "checkpoint.tsr").read_bytes()
    assert stamped_at(token, note + b"x", place / "root.pem") is False
    other = made_authority(tmp_path / "other", "Other")
    assert stamped_at(token, note, other / "root.pem") is False
    kit.audit(sync=False).report(tmp_path / "later", formats="csv")
    run("log", "timestamp", "--url", url, "--beside", str(tmp_path / "later"), within=environ)
    (reports / "checkpoint.tsr").write_bytes((tmp_path / "later" / "checkpoint.tsr").read_bytes())
    assert "time        FAILED     The time stamp is not one of this checkpoint" in run(*verify, ends=3).out
    (reports / "checkpoint.tsr").write_bytes(token[:100])
    assert "time        not known  The time stamp cannot be read here. Try: openssl ts" in run(*verify).out
    with pytest.raises(UnreadableFile, match="no certificates"):
        stamped_at(token, note, reports / "checkpoint")


def test_what_the_authority_refuses_or_mistakes_is_not_kept(sealed, authority, database):  # noqa: F811
    kit, _, _ = sealed
    with scripted(Answer(500)) as server, pytest.raises(InvalidInput, match="refused: status 500"):
        ask_authority(kit.database, server.url, kit.clock())
    _, told_at = ask_authority(kit.database, authority[1], kit.clock())
    assert told_at is not None
    [(token,)] = rows(database, "SELECT token FROM audit.log_timestamps")
    with scripted(Answer(200, bytes(token))) as server, pytest.raises(InvalidInput, match="something else"):
        ask_authority(kit.database, server.url, kit.clock())  # an old answer, whose nonce is another one
    with pytest.raises(InvalidInput, match="something else"):
        ask_authority(kit.database, f"{authority[1]}/other", kit.clock())
    assert len(rows(database, "SELECT token FROM audit.log_timestamps")) == 1
