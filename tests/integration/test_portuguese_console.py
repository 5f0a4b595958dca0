"""A console in Portuguese: no sentence of the toolkit's own stays English."""

import io
import re
import shlex

import click
import pytest

from tests.support.message_catalogue import english_in
from tests.support.uploaded_sales import add_sale
from toolkit import cli

NOBODY = "018f0000-0000-7000-8000-000000000000"
CPF = "11144477735\n"
PEOPLE = "--by 'Ana Souza' --approved-by 'Bruno Lima'"
WAIVED = "--owner ana --approved-by bruno --reason 'no exterior'"

WRITTEN_TO_THE_END = {
    "serve",
    "demo",
    "log cosign",
    "log cosign-request",
    "log timestamp",
    "db upgrade",
    "up",
    "down",
}
"""Commands that serve, need somebody else, or run on embedded services alone; tests of their own run them."""

FILES = {
    "empty.csv": "",
    "a.csv": "a,b\n1,2\n",
    "clients.csv": "externalId,cpf,rg,numberOnDealership,enrollment,firstName,email,birthdate,phoneNumber,"
    "neighborhood,installationNumber,address,addressNumber,city,zipCode\n1,123,,,,,bad,31/31/2000,99,x,1,,,,99\n",
    "good.csv": "externalId;cpf;rg;numberOnDealership;enrollment;firstName;lastName;email;birthdate;phoneNumber;"
    "neighborhood;installationNumber;address;addressNumber;city;zipCode\nA; 11144477735;1;2;3;Ana;Lima;"
    "a@example.com;01/02/1980;11987654321;Centro;1234567;Rua A;1;Santos;1310100\nTOTAL;;;;;;;;;;;;;;;\n",
    "sales.csv": "saleId,clientId,utilityGroup,isClientFinancialResponsible,createdAt\nX,nope,Z,maybe,yesterday\n"
    "sale-3,,A,true,2026-01-01\n",
    "manifest.csv": "saleId,fileName,fileFormat,type,evidenceType\nsale-1,a/b.pdf,pdf,text/html,XXX\n",
    "wanted.csv": "saleId,fileName,fileFormat,type,evidenceType\nsale-2,a.mp3,audio/mpeg,audio/mpeg,POV\n",
    "lines.jsonl": "{}\n",
    "waivers.toml": '[[waiver]]\nsale = 3\nreason = ""\nend = 2020-01-01\nfoo = 1\n',
    "broken.toml": "a = = 1\n",
    "jobs.toml": '[jobs.a]\nschedule = "x"\n',
    "steps.toml": '[jobs.a]\nschedule = "0 2 * * *"\nsteps = [{name = "b", command = ""}, {foo = 1}]\n',
    "twice.toml": '[jobs.a]\nschedule = "0 2 * * *"\ngrace = "1"\nkeep-days = "a"\nsteps = []\n',
    "card.toml": 'name = "a"\n[[question]]\nid = "A b"\ntext = "abc"\nof = ["XXX"]\n',
    "partners.toml": '[partner.Sul]\nmail = "x"\n',
    "mail.toml": '[partner.Sul]\nmail = ["x"]\n',
    "privacy.toml": "retention = 1\n",
    "review.csv": "evidenceId,heard\nnope,talvez\n",
    "answers.csv": "Finding id,Answer\nx,y\n",
}

BEFORE = (
    "review next; review draw; partner notify; findings --code WRONG; changes --from 2026-01-01; privacy record"
)

SAID = f"""
status; db map; db check; db adopt; db grants --role x --as reader; db confirm-restore --reason r {PEOPLE}
clients load absent.csv; clients load empty.csv; clients load a.csv; clients load clients.csv
clients load clients.csv --dry-run; clients load clients.csv --map A; clients load clients.csv --map cpf=nada
clients load good.csv; clients load good.csv; clients load good.csv --out a.csv; clients quality
sales load absent.csv; sales load a.csv; sales load sales.csv; sales complete absent; sales complete sale-2
credentials request absent.csv --out c; credentials request manifest.csv --out c
credentials request wanted.csv --out c.jsonl; evidence upload lines.jsonl --from .
evidence upload c.jsonl --from .
bucket sync; bucket sync --full; bucket sync --inventory nada; bucket adopt; audit; audit --as-of 2999-01-01
audit --as-of nunca; audit --as-of 2001-01-01; audit --out a.csv; audit --engine spark
report --per-partner; audit; findings; findings --code WRONG; findings --partner ninguém; findings --status open
report --audit latest --since 2026-01-01 --out since; report --partner ninguém; report --as-of 2999-01-01
report --audit absent; report --audit latest --show-cpf; report --format doc; report --audit latest --out a.csv
verify reports; verify absent; verify reports --seal abc; verify reports --seal {"a" * 64}
changes --from 2026-01-01 --out changed; changes --from nunca; changes --from 2999-01-01
sale show sale-1; sale show sale-2; sale show absent; sale show sale-1 --unmask teste
dossier sale-1 --out d; dossier absent --out d; dossier sale-1 --out d --with-files
evidence list sale-1; evidence list absent; evidence verify; evidence findings; evidence findings --show-names
evidence link {NOBODY} --reason r; evidence withdraw {NOBODY} --reason r {PEOPLE}
evidence withdraw {NOBODY} --reason r --by ana --approved-by Ana
waiver add --sale sale-2 {WAIVED} --end 2999-12-31; waiver add; waiver add --sale sale-2 {WAIVED} --end 32/12/2026
waiver add --file waivers.toml; waiver add --file absent.toml; waiver lint waivers.toml; waiver lint broken.toml
waiver lint absent.toml; waiver lint a.csv; waiver list --all; waiver revoke {NOBODY} --reason r --by ana
explain; explain MISSING_POV; explain REVIEW_FAILED; explain UNUSABLE; explain NADA
partner answers; partner answers answers.csv --partner Sul; partner answers absent.csv --partner Sul
TOOLKIT_PARTNERS=partners.toml partner notify; TOOLKIT_PARTNERS=mail.toml partner notify
review draw --scorecard card.toml; review draw --scorecard broken.toml; review draw --of NADA; review draw
review next --by 'Ana Souza'; review next --by 'Ana Souza' --out r.csv; review next --by 'Rui Melo'
review import review.csv; review import absent.csv; review record {NOBODY} heard=yes; review record {NOBODY} heard
privacy show; privacy export --out pe --reason r; privacy erase --dry-run; privacy erase
privacy erase --sale absent --basis b {PEOPLE}; privacy hold add absent --basis b --by ana
privacy hold add sale-1 --basis b --by ana; privacy hold list; privacy hold release {NOBODY} --reason r --by ana
privacy incident --since 2026-01-01; privacy incident --since 2026-01-02 --until 2026-01-01; privacy record
privacy replay --dry-run; privacy request add --right access; privacy request list; privacy retention
privacy request close {NOBODY} --outcome granted --basis b --by ana
TOOLKIT_PRIVACY=privacy.toml privacy retention; TOOLKIT_PRIVACY=broken.toml privacy retention
log checkpoint; log consistency a b; log export tiles; log prove 1 --out p; log prove 999999 --out p; log seal
log seal --new-key absent.pem; log verify absent; log verify tiles; log verify reports
run nada; run 03; run 03_missing_evidence_report -p x 1; run 03_missing_evidence_report -p sync talvez
notebooks list; notebooks copy nb; notebooks copy a.csv
job list; job check; job check nada; job history; job history nada; job missed; job run nada
job run nightly --date nunca; TOOLKIT_JOBS=jobs.toml job check; TOOLKIT_JOBS=steps.toml job check
TOOLKIT_JOBS=twice.toml job check; TOOLKIT_JOBS=broken.toml job check; TOOLKIT_JOBS=absent.toml job check
token issue --subject x; TOOLKIT_JWT_SECRET=x token issue --subject x; token revoke --id x --reason r
sample --out a.csv; sample --out samples; nada; audit --nada; clients load
TOOLKIT_TIMEZONE=Marte status; TOOLKIT_UPLOAD_TTL=x status; TOOLKIT_DEADLINES=X=1 status
TOOLKIT_SERVICE_SQL=absent.sql db check; TOOLKIT_SERVICE_SQL=a.csv db check
"""
"""Each command, rightly and wrongly used."""


def paths(command, path=()):
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from paths(command.get_command(context, name), (*path, name))


def commands(text):
    for line in text.replace("\n", ";").split(";"):
        words = shlex.split(line)
        settings = dict(word.split("=", 1) for word in words[:1] if word.startswith("TOOLKIT_"))
        if words:
            yield words[len(settings) :], settings


@pytest.mark.parametrize("path", [*paths(cli._toolkit)], ids=" ".join)
def test_every_help_is_portuguese(path, run, tmp_path):
    within = {"TOOLKIT_LANGUAGE": "pt-BR", "TOOLKIT_HOME": str(tmp_path)}
    assert english_in(run(*path, "--help", within=within).out) == {}


def test_every_command_answers_in_portuguese_to_right_and_wrong_use(
    run, database, add_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    add_file(add_sale(database, partner="Sul"))
    add_sale(database, "sale-2", utility_group="Z")
    left = {}
    for words, settings in (*commands(BEFORE), *commands(SAID)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CPF.encode()), encoding="utf-8"))
        settings = {name: str(tmp_path / text) if "." in text else text for name, text in settings.items()}
        said = run(*words, ends=None, TOOLKIT_LANGUAGE="pt-BR", **settings)
        if english := english_in(said.out + said.err):
            left[" ".join(words)] = english
    assert left == {}


def test_the_beginning_of_a_service_sql_is_the_same_sql_in_each_language(run, database, add_file):
    add_file(add_sale(database))
    mapped = ("db", "map", "--sales", "sales", "--records", "evidences", "--clients", "clients")
    english, portuguese = (run(*mapped, TOOLKIT_LANGUAGE=code).out for code in ("en", "pt-BR"))
    remark = re.compile("(?m)^-- (?!name: ).*")
    assert remark.sub("", portuguese) == remark.sub("", english)
    assert "email (text; pode ser NULL)" in portuguese
    assert english_in("\n".join(each for each in remark.findall(portuguese) if " (" not in each)) == {}


def test_the_walk_knows_every_command():
    walked = {" ".join(words) for words, _ in commands(SAID)} | WRITTEN_TO_THE_END
    groups = {path[:-1] for path in paths(cli._toolkit) if path}
    leaves = {" ".join(path) for path in paths(cli._toolkit) if path and path not in groups}
    assert {leaf for leaf in leaves if not any(f"{each} ".startswith(f"{leaf} ") for each in walked)} == set()
