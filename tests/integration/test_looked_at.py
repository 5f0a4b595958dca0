"""An audit tells what looked at the files that count, and the latest look decides about each."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from tests.support.audits import made_audit
from tests.support.uploaded_sales import add_sale, rows
from toolkit.audit.folder import open_audit
from toolkit.contract.contents import LOOK, IntegrityProblem
from toolkit.contract.evidence import EvidenceType, FileKind
from toolkit.database.tables import content_checks
from toolkit.evidence.kinds import readers_of
from toolkit.reports.notices import notices
from toolkit.reports.reading import read_audited

HEARD = {"kind": "audio", "media_type": "audio/mpeg", "sha256": "a", "depth": "DECODED", "look": LOOK}
DRAWN = {"kind": "pdf", "media_type": "application/pdf", "sha256": "b", "depth": "DRAWN", "look": LOOK}
READERS = readers_of(FileKind.AUDIO)
BOTH = {"readers": [*READERS], "speech_seconds": 3.5}


@pytest.fixture
def audit(database, add_file, sync, clock, tmp_path):
    """Note looks at a recording and at a document, one after the other, and make an audit."""
    clock.now = datetime.now(UTC).replace(microsecond=0)

    def made(*looks):
        add_sale(database)
        for each in (EvidenceType.POV, EvidenceType.DOC_CONTRATANTE):
            add_file("sale-1", each)
        sync()
        numbers = dict(rows(database, "SELECT kind, observation_id FROM audit.content_checks"))
        with database.transaction() as connection:
            for look in looks:
                row = {"observation_id": numbers[look["kind"]], "checked_at": clock(), **look}
                connection.execute(sa.insert(content_checks), row)
        return read_audited(made_audit(database, tmp_path, clock=clock))

    return made


def test_it_names_readers_and_depth(audit):
    looks = audit(HEARD | BOTH, DRAWN | {"readers": [*readers_of(FileKind.PDF)]}).looks
    assert looks.readers == dict.fromkeys((*READERS, *readers_of(FileKind.PDF)), 1)
    assert looks.depth == {"DECODED": 1, "DRAWN": 1}
    assert (looks.older_look, looks.without_speech) == (0, 0)


def test_the_folder_holds_it_of_each_file(audit, tmp_path, database):
    result = audit(HEARD | BOTH)
    [folder] = (tmp_path / "audits").glob("2*")
    kept = open_audit(folder)
    assert kept.facts.files == result.looks
    told = "depth, readers, speech_seconds, look"
    for table in ("files", "objects"):
        [row] = kept.sql(f"SELECT {told} FROM {table} WHERE sha256 = 'a'").to_pylist()
        assert tuple(row.values()) == ("DECODED", "|".join(READERS), 3.5, LOOK)


def test_it_says_that_files_were_verified_by_an_older_way_of_looking(audit):
    result = audit(HEARD | BOTH | {"look": None}, DRAWN | {"readers": ["pypdf 1.0"]})
    assert result.looks.older_look == 2
    [told] = [each for each in notices(result) if "toolkit evidence verify" in each]
    assert told.startswith("2 ")


def test_it_says_that_nothing_looked_for_speech(audit):
    result = audit(HEARD | {"readers": ["av 18.1.0"]}, DRAWN)
    assert result.looks.without_speech == 1
    assert [each for each in notices(result) if "`speech`" in each]


def test_a_better_reader_corrects_what_an_older_one_called_damaged(audit):
    result = audit(HEARD | {"problem": "DAMAGED"}, HEARD | BOTH)
    assert result.faults.empty
    assert result.looks.depth == {"DECODED": 1}


def test_a_fault_stands_since_the_first_look_that_found_it(audit):
    result = audit(HEARD, HEARD | {"problem": "SILENT"}, HEARD | {"problem": "DAMAGED"})
    assert list(result.faults["code"]) == ["SILENT"]


def test_a_recording_without_speech_is_a_finding(audit):
    result = audit(HEARD | BOTH | {"active_parts": ["NO_SPEECH"]})
    assert IntegrityProblem.NO_SPEECH in {each.problem for each in result.file_findings}
