"""What is loaded while everything is used comes from Python, from the C runtime or from the environment."""

import os
import re
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from toolkit import embedded
from toolkit.samples import __file__ as samples

EVERYTHING = """
import importlib, pkgutil, sys
from pathlib import Path

import toolkit
for module in pkgutil.walk_packages(toolkit.__path__, "toolkit."):
    if ".migrations" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)

import duckdb
from tests.support.audit_results import Told, result_of, written
from tests.support.evidence_files import pdf
from toolkit.evidence.documents import inspect_document
from toolkit.evidence.recordings import inspect_recording
from toolkit.reports import FORMATS

duckdb.sql("SELECT sum(range) FROM range(10)").to_arrow_table().to_pandas()
recording, folder = Path(sys.argv[1]), Path(sys.argv[2])
assert inspect_recording(recording, "audio/mpeg").seconds
(folder / "a.pdf").write_bytes(pdf())
inspect_document(folder / "a.pdf")
written(result_of([Told("sale-1")]), folder / "report", *FORMATS)
print(Path("/proc/self/maps").read_text())
"""

RUNTIME = re.compile(
    r"(ld-linux[\w-]*|lib(c|m|mvec|dl|rt|pthread|util|resolv|nss_\w+|anl|stdc\+\+|gcc_s|atomic|python3[\d.]*)([-.][\d.]+)?)\.so"
)
"""The runtime of C and C++, and Python's own library."""


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="only Linux tells what a process has loaded"
)


def test_no_library_of_the_system_is_needed_beside_pythons_own(tmp_path):
    recording = next((Path(samples).parent / "recordings").glob("*.mp3"))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EVERYTHING, recording, tmp_path],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    assert len(loaded(ran.stdout)) > 50
    assert foreign(ran.stdout) == set()


def test_the_embedded_services_need_no_library_of_the_system_either(home, database, bucket):
    put = bucket._client.put_object(Bucket=bucket.name, Key="a", Body=b"1")
    with database.transaction() as connection:
        connection.exec_driver_sql("SELECT to_tsvector('portuguese', 'vendas')")
        servers = [each.process for each in embedded.running(home)]
        maps = [text for each in (*servers, *servers[0].children()) if (text := maps_of(each.pid))]
    assert put
    assert len(maps) > 4
    # The programs are copied into the home where the account of the server cannot reach the environment.
    assert {each for text in maps for each in foreign(text, *home.glob("postgresql-*"))} == set()


def maps_of(pid):
    """The memory of a process; empty where it has ended meanwhile, as workers of autovacuum do at any time."""
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def loaded(maps):
    """The shared objects in the memory of a process."""
    return {Path(line.split(maxsplit=5)[5]) for line in maps.splitlines() if ".so" in line}


def foreign(maps, *more):
    """Those that are neither Python's, nor the C runtime's, nor the environment's."""
    own = [Path(sys.prefix).resolve(), Path(sysconfig.get_path("stdlib")).resolve(), *more]
    of_python = libraries_of_python()
    return {
        str(path)
        for path in loaded(maps)
        if not any(path.is_relative_to(folder) for folder in own)
        and not RUNTIME.match(path.name)
        and path.resolve() not in of_python
    }


@cache
def libraries_of_python():
    """The libraries that the interpreter and its standard modules are linked with."""
    modules = [sys.executable, *Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("*.so")]
    told = subprocess.run(["ldd", *modules], capture_output=True, text=True).stdout
    return {Path(path).resolve() for path in re.findall(r"=> (/\S+)", told)}
