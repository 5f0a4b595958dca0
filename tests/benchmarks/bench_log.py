"""The custody log: sealing events, proving some of them, and writing the log as tiles.

What ``toolkit log prove`` takes as a whole has the start of Python in it.
"""

import sqlalchemy as sa

from tests.benchmarks.made_sales import NOW
from tests.benchmarks.measuring import line, own_database, peak_mb, timed, toolkit
from toolkit.contract.events import LogKeys
from toolkit.log.export import export_tiles
from toolkit.log.notes import LogSigner, new_key
from toolkit.log.sealing import prove, seal_events

_EVENTS = 2_500_000
_AT_ONCE = 500_000
_PROOFS = 100

_MADE = """
    INSERT INTO audit.custody_events (kind, happened_at, detail)
    SELECT 'UPLOADED', :now, jsonb_build_object(
        'observation', n, 'key', audit.sha256_hex(n::text), 'size', 123456, 'etag', md5(n::text),
        'lastModified', audit.utc_text(:now))
    FROM generate_series(CAST(:first AS bigint), :last) AS n
"""


def main(scale):
    """Print the seconds of each, and the memory."""
    events = max(1000, round(_EVENTS * scale))
    with own_database() as (database, home):
        for first in range(1, events + 1, _AT_ONCE):
            with database.transaction() as connection:
                given = {"now": NOW, "first": first, "last": min(events, first + _AT_ONCE - 1)}
                connection.execute(sa.text(_MADE), given)
        key = new_key()
        environ = {"TOOLKIT_HOME": str(home), "TOOLKIT_LOG_ORIGIN": "evidence.example.com/custody"}
        (home / "custody-log.pem").write_bytes(key)
        (home / "custody-log.pem").chmod(0o600)
        signer = LogSigner.read(environ["TOOLKIT_LOG_ORIGIN"], key, "the key")
        keys = LogKeys(("k" * 32,))
        line("seal", timed(lambda: seal_events(database.at(lambda: NOW), signer, keys)).seconds, events, _peak())
        with database.transaction() as connection:
            wanted = range(1, events, max(1, events // _PROOFS))
            proven = timed(lambda: [prove(connection, event) for event in wanted])
        line("prove", proven.seconds, len(wanted), f"{proven.seconds / len(wanted) * 1000:.1f} ms each (goal 50)")
        words = ["log", "prove", events // 3, "--out", home / "proof"]
        command = timed(lambda: toolkit(words, environ))
        size = (home / "proof" / "entry.json.tlog-proof").stat().st_size
        line("toolkit log prove", command.seconds, 1, f"{command.answer:.0f} MB (goal 100), {size:,} bytes")
        exported = timed(lambda: export_tiles(database, home / "log", keys))
        line("export", exported.seconds, events, _peak())


def _peak():
    return f"{peak_mb():.0f} MB at most"
