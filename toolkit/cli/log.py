"""``toolkit log``: seal the custody log, and prove to strangers what is in it."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from toolkit.atomic_files import PrivateFolder
from toolkit.cli.context import (
    DONE,
    NEEDS_ATTENTION,
    NonEmptyPath,
    json_option,
    note,
    pass_kit,
    print_json,
    show,
    shows,
)
from toolkit.contract.fields import pick_camel
from toolkit.errors import InvalidInput, UnreadableFile
from toolkit.kit.connection import Kit
from toolkit.kit.shown import Shown, say
from toolkit.kit.spoken import _
from toolkit.log.attestations import ask_authority, ask_witness, keep_cosignature, request_for, said_of
from toolkit.log.bundle import COSIGS, ENTRY, STAMP, bundle, verify_bundle
from toolkit.log.export import OTHER_ENTRIES, computed, export_tiles, read_tiles, rewritten
from toolkit.log.merkle import ReadTile, consistency_proof, is_consistent
from toolkit.log.notes import COSIGNATURE, ED25519, Checkpoint, SignedState, VerifierKey, lines_of
from toolkit.log.sealing import keys_of, newest_checkpoint, signed_state, tiles_of
from toolkit.log.sealing import prove as prove_event


@click.group()
def log() -> None:
    """Seal the custody log, and prove to strangers what is in it.

    The log tells of each record when it was asked for and issued (or RECORDED, where the
    service made it; RECORD_CHANGED and RECORD_GONE where it changed or deleted it), when
    its file was seen, verified, replaced or gone, when it was withdrawn, and of each audit
    and report: ids, hashes and times only. It is a Merkle tree whose states are signed
    (RFC 9162, C2SP). Give the key (toolkit log checkpoint --json) to those who rely on your
    reports, and keep a checkpoint where nobody who can write to the database can change it.

    Examples:
      toolkit log checkpoint
      toolkit log verify reports
      toolkit log export log-tiles
    """


@log.command(short_help="Seal the events that were recorded since the last checkpoint.")
@click.option("--new-key", type=NonEmptyPath(), help="Let the key in this file sign from now on.")
@shows(DONE)
def seal(kit: Kit, new_key: Path | None) -> Shown[Any]:
    """Append the events that were recorded since the last checkpoint to the log, and sign its new state.

    Audits and reports do it by themselves. The key is in the file of TOOLKIT_LOG_SIGNING_KEY,
    else one is made in TOOLKIT_HOME; only the machine that has a log's key seals it. To make
    one: openssl genpkey -algorithm ed25519 -out FILE; chmod 600 FILE

    With --new-key both keys sign the new state, whose last entry names them (KEY_ROTATED);
    name FILE in TOOLKIT_LOG_SIGNING_KEY afterwards. What the old key signed verifies as ever.

    Examples:
      toolkit log seal
      toolkit log seal --new-key custody-2027.pem
    """
    shown = _shown(kit.seal_log() if new_key is None else kit.change_log_key(new_key))
    if not kit.log_keys.keys:
        note("the hashes in the log have no key: a CPF can be found by trying all; set TOOLKIT_LOG_KEY")
    return shown


@log.command(short_help="Show the newest signed state of the log.")
@shows(DONE)
def checkpoint(kit: Kit) -> Shown[Any]:
    """Show the newest signed state of the log: its name, the number of entries, the root, and the signature.

    Examples:
      toolkit log checkpoint > checkpoint
      toolkit log checkpoint --json    with the public key
    """
    return _shown(kit.database.run(newest_checkpoint))


def _shown(signed: SignedState | None) -> Shown[Any]:
    text = "Nothing is in the custody log yet." if signed is None else signed.note.removesuffix("\n")
    document = None if signed is None else pick_camel(signed, "size", "root", "note", "vkey", "issued_at")
    return Shown(signed, [say(text)], {"checkpoint": document})


@log.command(short_help="Write the proof that an event is in the log.")
@click.argument("event", type=click.IntRange(1, 2**63 - 1))
@click.option("--out", type=NonEmptyPath(), required=True, help="The folder to write into.")
@pass_kit
def prove(kit: Kit, event: int, out: Path) -> None:
    """Write the entry of the event with this number, and the proof that it is in the log.

    Example:
      toolkit log prove 42 --out proof-42
    """
    proven = kit.database.run(prove_event, event)
    if proven is None:
        raise InvalidInput("No event {} is in the log; what is new is put into it by: toolkit log seal", event)
    if (out / ENTRY).exists() and (out / ENTRY).read_bytes() != proven[0]:
        raise InvalidInput("{} has the proof of another event.", out)
    with PrivateFolder(out) as draft:
        for name, content in (files := bundle(*proven)).items():
            (draft / name).write_bytes(content)
        for name in files:
            (draft / name).replace(out / name)
    show("{}: entry {:,} of {:,}", out, proven[1].index, proven[2].size)


@log.command(short_help="Check a report, an audit or a proof, without database and settings.")
@click.argument("folder", metavar="DIR", type=NonEmptyPath())
@click.option("--key", metavar="VKEY", help="The key of the log as you know it, as log.vkey has it; or its file.")
@click.option("--witness", "witnesses", metavar="VKEY", multiple=True, help="Who must have signed, too.")
@click.option("--tsa", metavar="PEM", type=NonEmptyPath(), help="The certificates of who must have stamped it.")
@json_option
def verify(folder: Path, key: str | None, witnesses: tuple[str, ...], tsa: Path | None, as_json: bool) -> int:
    """Check the report, audit or proof in DIR against the signed log; no database and no settings are needed.

    It answers with four verdicts:
      files       each file of SHA256SUMS is as it was written, and the entry of the log names them
      inclusion   the entry is in the log, in a state that the log's key signed
      time        an authority of --tsa stamped that state; not known where none is named
      witness     each --witness signed that state, too; not known where none is named
    Without --key it is the key in DIR: compare it with the one that you got another way.
    That the log is complete, is not proven. DIR/VERIFY.md tells more; sh DIR/verify.sh DIR
    checks the same with openssl alone.

    Examples:
      toolkit log verify reports
      toolkit log verify reports --key evidence.example.com/custody+9543d5d6+AYqI...
      toolkit log verify reports --witness auditor.vkey

    Exit status 3: one of them does not hold. 1: there is no proof in DIR.
    """
    others = [_key(each, COSIGNATURE) for each in witnesses]
    found = verify_bundle(folder, None if key is None else _key(key), others, tsa)
    if as_json:
        print_json({name: {"holds": each.holds, "told": _(each.told)} for name, each in found.items()})
    else:
        words = {True: "holds", False: "FAILED", None: "not known"}
        for name, each in found.items():
            show("{}  {}  {}", f"{_(name):<10}", f"{_(words[each.holds]):<9}", each.told)
    return NEEDS_ATTENTION if any(each.holds is False for each in found.values()) else DONE


def _key(given: str, kind: bytes = ED25519) -> VerifierKey:
    """Read a key, or the file that holds it."""
    try:
        return VerifierKey.parse(Path(given).read_text("utf-8"), kind)
    except (OSError, ValueError):  # no such file, or no text
        return VerifierKey.parse(given, kind)


of_witness = click.option(
    "--witness", metavar="VKEY", required=True, help="The key of the witness, NAME+ID+KEY; or its file."
)


@log.command("cosign-request", short_help="Write the request for the signature of a witness, or send it.")
@of_witness
@click.option("--old", type=click.IntRange(0), help="The entries of the state that it signed last, if not here.")
@click.option("--to", "url", metavar="URL", help="Send it there, and keep the answer.")
@pass_kit
def cosign_request(kit: Kit, witness: str, old: int | None, url: str | None) -> None:
    """Write the request to sign the newest state of the log, with the proof that it goes on from the last one.

    A witness is somebody else who signs a state after that proof (C2SP tlog-witness): two
    histories cannot both be shown then. Send the request by any channel, or with --to to
    URL/add-checkpoint; keep the answer by: toolkit log cosign FILE

    Examples:
      toolkit log cosign-request --witness auditor.vkey > request
      toolkit log cosign-request --witness auditor.vkey --to https://witness.example.com
    """
    key = _key(witness, COSIGNATURE)
    if url is None:
        click.echo(request_for(kit.database, key, old), nl=False)
    else:
        _show_cosigned(key, *ask_witness(kit.database, key, url, kit.clock()))


@log.command(short_help="Keep the signature that a witness answered with.")
@click.argument("file", type=NonEmptyPath())
@of_witness
@click.option("--beside", type=NonEmptyPath(), help="Lay it into the folder of a report or audit of that state.")
@pass_kit
def cosign(kit: Kit, file: Path, witness: str, beside: Path | None) -> None:
    """Check the signature of a witness in FILE, and keep it; each later request goes on from it.

    With --beside it is written to checkpoint.cosigs in the folder of a report or an audit, where
    toolkit log verify DIR --witness VKEY checks it.

    Example:
      toolkit log cosign answer --witness auditor.vkey --beside reports
    """
    key = _key(witness, COSIGNATURE)
    try:
        lines = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UnreadableFile("{} cannot be read as the answer of a witness.", file) from None
    _show_cosigned(key, *keep_cosignature(kit.database, key, lines, kit.clock()))
    if beside is not None:
        show("{}", _laid(kit, beside))


@log.command(short_help="Have an authority stamp the newest state of the log.")
@click.option("--url", metavar="URL", help="Its address; that of TOOLKIT_TSA_URL by default.")
@click.option("--beside", type=NonEmptyPath(), help="Lay it into the folder of a report or audit of that state.")
@pass_kit
def timestamp(kit: Kit, url: str | None, beside: Path | None) -> None:
    """Have a time stamp authority (RFC 3161) stamp the newest state of the log, and keep its answer.

    The custody log has the hash of the answer, so that each later time stamp renews it. With
    --beside it is written to checkpoint.tsr in the folder of a report or an audit, where
    toolkit log verify DIR --tsa PEM checks it, and openssl ts -verify does.

    Examples:
      toolkit log timestamp --url https://tsa.example.com
      toolkit log timestamp --beside reports
    """
    address = url or kit.settings.tsa_url
    if address is None:
        raise InvalidInput("Name the authority by --url, or in TOOLKIT_TSA_URL.")
    size, stamped_at = ask_authority(kit.database, address, kit.clock())
    at = _("a time that cannot be read here") if stamped_at is None else stamped_at.isoformat()
    show("The log of {:,} entries was stamped at {}", size, at)
    if beside is not None:
        show("{}", _laid(kit, beside))


def _show_cosigned(key: VerifierKey, size: int, signed_at: datetime) -> None:
    show("{} signed the log of {:,} entries at {}", key.name, size, signed_at.isoformat())


def _laid(kit: Kit, folder: Path) -> Path:
    """Write what others said of the state that the folder has: signatures of witnesses, and a time stamp."""
    with kit.database.transaction() as connection:
        size = _state(keys_of(connection), folder / "checkpoint").size
        lines, token = said_of(connection, size)
    given = {COSIGS: lines.encode(), STAMP: token}
    given = {name: content for name, content in given.items() if content}
    if not given:
        raise InvalidInput("Nobody signed or stamped the state of {:,} entries, which {} has.", size, folder)
    for name, content in given.items():
        (folder / name).write_bytes(content)
    return folder


@log.command(short_help="Tell whether the log goes on from one checkpoint to another.")
@click.argument("old", metavar="A", type=NonEmptyPath())
@click.argument("new", metavar="B", type=NonEmptyPath())
@click.option(
    "--log", "exported", type=NonEmptyPath(), metavar="DIR", help="The log as export wrote it, and no database."
)
@pass_kit
def consistency(kit: Kit, old: Path, new: Path, exported: Path | None) -> int:
    """Tell whether the log of checkpoint B begins with the entries of checkpoint A, and print the proof.

    A and B are files with checkpoints of this log, such as those in the folders of reports.
    With --log no database and no settings are needed; its entries are hashed anew, and a report
    among them that says an earlier time than one before it is named. Where A stands in a log as export
    wrote it earlier, the first entry that was edited, inserted, deleted or reordered is named.

    Examples:
      toolkit log consistency reports/history/20261123T020000Z/checkpoint reports/checkpoint
      toolkit log consistency kept/checkpoint log-tiles/checkpoint --log log-tiles

    Exit status 3: it does not; one of them is of another history, the end of the log was cut off, or the
    log in DIR has other entries or was written by a clock that was turned back.
    """
    if exported is not None:
        tile, size, keys = read_tiles(exported)
        status = _compared(tile, size, keys, old, new)
        whole, wrong = computed(exported)
        if whole != _state(keys, exported / "checkpoint").root:
            wrong = OTHER_ENTRIES
        changed = None
        # The entries beside A tell something only where they are those that were signed.
        if (old.parent / "tile").is_dir() and computed(old.parent)[0] == _state(keys, old).root:
            changed = rewritten(old.parent, exported)
        for each in filter(None, (wrong, changed)):
            show("{}", each)
        return status if wrong is changed is None else NEEDS_ATTENTION
    with kit.database.transaction() as connection:
        return _compared(tiles_of(connection), signed_state(connection).size, keys_of(connection), old, new)


def _compared(tile: ReadTile, size: int, keys: Sequence[str], old: Path, new: Path) -> int:
    """Compare two states of a log of this size, which these keys sign."""
    first, second = sorted((_state(keys, old), _state(keys, new)), key=lambda state: state.size)
    if second.size > size:
        show("The log has {:,} entries, and was signed with {:,}: its end was cut off.", size, second.size)
        return NEEDS_ATTENTION
    proof = consistency_proof(tile, first.size, second.size)
    if not is_consistent(first.size, first.root, second.size, second.root, proof):
        sizes = second.size, first.size
        show("The log of {:,} entries does not go on from that of {:,}: they are of two histories.", *sizes)
        return NEEDS_ATTENTION
    note("The log of {:,} entries goes on from that of {:,}. The proof:", second.size, first.size)
    click.echo(lines_of(proof), nl=False)
    return DONE


def _state(keys: Sequence[str], path: Path) -> Checkpoint:
    """Read a checkpoint that one of the keys of this log signed.

    Raises:
        UnreadableFile: it is none, or is not there.
    """
    try:
        signed = path.read_text("utf-8", "replace")
    except OSError as error:
        raise UnreadableFile("{} cannot be read: {}.", path, error.strerror) from None
    text = next((text for key in keys if (text := VerifierKey.parse(key).opens(signed)) is not None), None)
    found = None if text is None else Checkpoint.parse(text)
    if found is None:
        raise UnreadableFile("{} is no checkpoint that the key of this log signed.", path)
    return found


@log.command(short_help="Write the log as a directory of tiles, for the tools of others.")
@click.argument("out", metavar="DIR", type=NonEmptyPath())
@pass_kit
def export(kit: Kit, out: Path) -> int:
    """Write the whole log into the new folder DIR, from which other people's tools make the proofs themselves.

    The form is that of C2SP tlog-tiles: DIR/checkpoint, DIR/tile/... The tree is computed
    anew, and each entry is compared with its event in the database: what was changed since
    it was sealed is named.

    Example:
      toolkit log export log-tiles

    Exit status 3: the database holds something else than was sealed.
    """
    signed, misfit = export_tiles(kit.database, out, kit.log_keys)
    show("{}: {:,} entries", out, signed.size)
    if misfit is None:
        return DONE
    show("{}", misfit)
    return NEEDS_ATTENTION
