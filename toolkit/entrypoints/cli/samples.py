"""``toolkit sample`` and ``toolkit demo``: made-up data, and the whole job on them."""

import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from toolkit.entrypoints.cli.context import Context, Place, pass_context
from toolkit.entrypoints.cli.printing import note, show
from toolkit.entrypoints.demo import Demo
from toolkit.errors import SettingsError
from toolkit.samples.dataset import DEFAULT_CLIENTS, DEFAULT_SALES, DEFAULT_SEED, make_samples
from toolkit.samples.folder import write_samples
from toolkit.samples.scenarios import SCENARIOS
from toolkit.storage import embedded


@click.command()
@click.option("--out", type=Place(file_okay=False), required=True, help="The folder to fill.")
@click.option(
    "--seed",
    type=int,
    default=DEFAULT_SEED,
    show_default=True,
    help="Seed of the random data; equal seeds give equal files.",
)
@click.option(
    "--clients",
    type=click.IntRange(min=10),
    default=DEFAULT_CLIENTS,
    show_default=True,
    help="The number of clients.",
)
@click.option(
    "--sales",
    type=click.IntRange(min=len(SCENARIOS)),
    default=DEFAULT_SALES,
    show_default=True,
    help="The number of sales.",
)
@pass_context
def sample(ctx: Context, out: Path, seed: int, clients: int, sales: int) -> None:  # noqa: ARG001
    """Write a folder of made-up files: clients, sales, a manifest and the evidence files.

    \b
    Nobody in them is real. Some rows are wrong, as they are in life, and every case of the
    rules occurs. clientId in sales.csv is empty: the ids exist once the clients are registered.

    \b
    Example:
      toolkit sample --out sample-data
      toolkit clients load sample-data/clients.csv sample-data/clients.xlsx --out rejected
      toolkit sales load sample-data/sales.csv
    """
    write_samples(make_samples(seed=seed, clients=clients, sales=sales), out)
    show(str(out))


@click.command()
@click.option(
    "--out",
    type=Place(file_okay=False),
    default=Path("reports"),
    show_default=True,
    help="The folder for the report, the sample data and the executed notebooks.",
)
@click.option(
    "--shared", is_flag=True, help="Run also where DATABASE_URL or EVIDENCE_BUCKET names a shared service."
)
@pass_context
def demo(ctx: Context, out: Path, shared: bool) -> None:
    """Do the whole job on made-up data, end to end, and say at each step what happened.

    \b
    Clients are loaded, sales taken over, credentials requested, files uploaded, and the
    report written, by the notebooks of the project. A second time finds everything there; only
    credentials that ran out meanwhile are requested anew. Embedded services that did not run
    before are stopped at the end; their data stay.

    \b
    Example:
      toolkit demo --out reports
    """
    started = time.monotonic()
    if not shared and (ctx.settings.database_url or ctx.settings.evidence_bucket):
        raise SettingsError(
            "The demo fills database and bucket with made-up sales, and DATABASE_URL or EVIDENCE_BUCKET names a "
            "shared one. Unset both to use the embedded services, or add --shared if it is meant for this."
        )
    home = ctx.settings.home
    ours = not any(service.running for service in embedded.statuses(home))
    try:
        Demo(ctx.application, ctx.environ, out, show).run()
    finally:
        if ours:
            ctx.close()
            embedded.stop(home)
    seconds = time.monotonic() - started
    note(f"Done in {seconds:.0f} s. The data stay in {home}; look at them with: {_toolkit(ctx.environ)} audit")


def _toolkit(environ: Mapping[str, str]) -> str:
    """Return the name to type for this command: without an active environment the shell needs its path."""
    beside = Path(sys.executable).with_name("toolkit")
    found = shutil.which("toolkit", path=environ.get("PATH", ""))
    if not beside.exists() or (found is not None and Path(found).samefile(beside)):
        return "toolkit"
    return shlex.quote(str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside))
