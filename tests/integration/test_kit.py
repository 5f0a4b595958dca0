"""The toolkit as one object: its guide runs, frames go in and out, mistakes are its own errors."""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import toolkit
from tests.support.uploaded_sales import Story
from toolkit.errors import InvalidInput, SaleNotFound, SettingsError
from toolkit.jobs.runs import job_history
from toolkit.samples.dataset import make_samples, write_samples

GUIDE = (Path(toolkit.__file__).parent / "kit" / "README.md").read_text("utf-8")


@pytest.fixture
def kit(workplace):
    with toolkit.connect() as connected:
        yield connected


def test_the_guide_runs_and_shows_every_public_name(kit, tmp_path, capsys):
    write_samples(make_samples(), tmp_path / "samples")
    examples = re.findall(r"```python\n(.+?)```", GUIDE, flags=re.DOTALL)
    for example in examples:
        exec(compile(example, "README.md", "exec"), {})
    assert [name for name in toolkit.__all__ if not re.search(rf"\b{name}\b", "\n".join(examples))] == []
    printed = capsys.readouterr()
    assert "145 rows: 135 would be registered, 9 rejected, 1 skipped" in printed.out
    assert "There is no sale with the id 'no such sale'." in printed.out
    assert printed.err == ""  # no bar where nobody looks
    assert {path.name for path in (tmp_path / "reports").iterdir()} >= {"missing-evidence.csv"}


def test_rejected_rows_of_a_frame_come_back_as_they_were_and_leave_no_file(kit, tmp_path):
    write_samples(make_samples(), tmp_path)
    frame = pd.read_csv(tmp_path / "clients.csv", sep=";", dtype=str, encoding="cp1252")
    frame.loc[0, "Nome"] = "=1+1"
    loaded = kit.load_clients(frame.assign(CPF="1"))
    assert (".rejected.csv" in str(loaded), loaded.document["rejectedFiles"]) == (False, [])
    rejected = loaded.rejected
    assert rejected.columns.tolist() == [*frame.columns, "line", "errors"]
    assert (len(rejected), rejected["Nome"].iloc[0]) == (len(frame), "=1+1")
    assert rejected["errors"].str.contains("Must be a CPF").all()
    assert kit.load_clients(frame.head(1))._repr_mimebundle_()["text/html"].count("first lines") == 0  # of repairs
    assert [*tmp_path.rglob("*frame*"), *kit.settings.home.rglob("*frame*")] == []


def test_numbers_beside_empty_cells_stay_whole(kit):
    row = {"saleId": 7, "clientId": None, "utilityGroup": "A", "isClientFinancialResponsible": True}
    frame = pd.DataFrame([row | {"createdAt": "2026-11-01"}, row | {"saleId": None}])
    loaded = kit.load_sales(frame, overwrite=True)
    assert (loaded.result.inserted, loaded.rejected["saleId"].tolist()) == (1, [""])
    assert kit.sale("7").result.sale.utility_group == "A"
    arrow = frame.convert_dtypes(dtype_backend="pyarrow").astype({"createdAt": "timestamp[us][pyarrow]"})
    assert str(arrow["clientId"].dtype) == "null[pyarrow]"
    assert kit.load_sales(arrow, overwrite=True).result.unchanged == 1


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda kit: kit.load_sales("a.csv", overwrite="false"), InvalidInput, "overwrite must be True or False"),
        (lambda kit: kit.sync(confirmed="False"), InvalidInput, "confirmed must be True or False"),
        (lambda kit: kit.privacy.retention(erase_them="false"), InvalidInput, "erase_them must be True or False"),
        (lambda kit: kit.load_clients([]), InvalidInput, "Name a file"),
        (lambda kit: kit.load_clients(["a.csv", None]), InvalidInput, "Name a file"),
        (lambda kit: kit.load_sales(Path("s3://b/x.csv")), SettingsError, "is in a bucket; a folder or file of"),
        (lambda kit: kit.load_clients({"cpf": ["1"]}), InvalidInput, "Name a file"),
        (lambda kit: kit.load_sales(["a.csv", "b.csv"]), InvalidInput, "Name one file only, not 2."),
        (lambda kit: kit.link("V-1", reason="a look"), InvalidInput, "'V-1' is not an id"),
        (lambda kit: kit.link("0" * 32, reason="a look", seconds=2.5), InvalidInput, "A link lives for 1 to"),
        (lambda kit: job_history(kit, runs=0), InvalidInput, "runs must be a whole number from 1"),
        (lambda kit: job_history(kit, runs="60"), InvalidInput, "runs must be a whole number from 1"),
        (lambda kit: kit.audit("next year"), InvalidInput, "is not a time"),
        (lambda kit: vars(kit).update(clock=lambda: os.close(-1)) or kit.audit(), InvalidInput, "^Bad file desc"),
        (lambda kit: kit.audit(engine="oracle"), InvalidInput, "An engine is duckdb or spark"),
        (lambda kit: kit.sale("x"), SaleNotFound, "There is no sale with the id 'x'."),
        (lambda kit: kit.sale(7), SaleNotFound, "There is no sale with the id '7'."),
    ],
)
def test_a_mistake_is_an_error_of_the_toolkit(kit, call, error, told):
    with pytest.raises(error, match=told) as raised:
        call(kit)
    [line] = raised.value._render_traceback_()
    assert line.startswith(f"{error.__name__}: {raised.value}")


def test_an_audit_that_is_opened_without_a_database_says_what_it_cannot_tell(kit, database, tmp_path):
    Story(database).sale("S-1")
    made = kit.audit(sync=False, out=str(tmp_path / "audits"))
    assert json.loads(json.dumps(made.document)) == made.document
    assert "so that every finding counts as new" in str(made.changes("2020-01-01"))
    opened = toolkit.open_audit(made.folder)
    assert opened.sql("SELECT count(*) AS n FROM verdicts WHERE sale_id = ?", "S-1")["n"].tolist() == [1]
    assert opened.verdicts.dtypes["created_at"].pyarrow_dtype == pa.timestamp("us", "America/Sao_Paulo")
    assert opened.report(tmp_path / "out", formats="csv").result == [tmp_path / "out" / "missing-evidence.csv"]
    [portuguese] = opened.report(tmp_path / "saida", formats="csv", language="pt-BR").result
    assert portuguese.read_bytes() == (tmp_path / "out" / "missing-evidence.csv").read_bytes()
    with pytest.raises(InvalidInput, match="A status is one of open, waived"):
        opened.listed_findings(status="Open")
    with pytest.raises(InvalidInput, match="for programs or excel, not for 'Excel'"):
        opened.report(tmp_path / "out", formats="csv", csv="Excel")
    with pytest.raises(SettingsError, match="is in a bucket"):
        opened.report("s3://bucket/reports", formats="csv")
    with pytest.raises(InvalidInput, match="cannot be answered"):
        opened.sql("SELECT no_column FROM verdicts")
    with pytest.raises(InvalidInput, match="is empty"):
        opened.sql("-- SELECT 1")
    assert opened.partners().document["partners"] == 0  # the row of sales without one is none
    with pytest.raises(InvalidInput, match="stands in the database"):
        opened.changes("2026-01-01")
