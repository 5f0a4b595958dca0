"""Find the key, the name and the type of a file: in one column, several, or parts of one."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from toolkit.domain.evidence import MEDIA_TYPES
from toolkit.storage.service_map.draft.choices import ABSENT, Choice, toml
from toolkit.storage.service_map.draft.matching import Match
from toolkit.storage.service_map.draft.references import KEY_WORDS
from toolkit.storage.service_map.draft.samples import ENDING, MEDIA, Field, Samples, fields_of, share
from toolkit.storage.service_map.draft.vocabulary import tokens, words
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]+/")
_STORAGE: Final = re.compile(
    r"https?://(?:s3[.-]|(?:[^/]*[^/a-z0-9])?minio|storage\.googleapis\.)[^/]*/|https?://[^/]+:9000/"
)
"""The pattern of an address in which the bucket is the first folder; PostgreSQL reads it, too."""
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_BUCKET: Final = "[^/]+/"
_BUCKETS: Final = {"bucket", "container"}
_SEVERAL: Final = 2
_SLASHES: Final = 3
_TRIED: Final = 10
_TRIED_BELOW: Final = 3
"""The keys that are looked for below each folder of the bucket."""


def file_parts(
    match: Match, samples: Samples, holds: Callable[[str], bool] | None, folders: Sequence[str] = ()
) -> dict[str, Choice]:
    """Return the choices for ``object_key``, ``file_name``, ``file_format`` and ``type``.

    ``folders`` are those of the bucket: one of them may stand in front of all keys.
    """
    key, name = match.fields.get("object_key"), match.fields.get("file_name")
    folder = _folder(match, samples, {key, name})
    named = name or key
    found: dict[str, Choice] = {}
    whole = key is not None and any("/" in value for value in samples.values(key))
    if folder is not None and named is not None and not whole:
        folders, names = samples.values(folder), samples.values(named)
        examples = [f"{one.rstrip('/')}/{two}" for one in folders[:3] for two in names[:4]]
        source: dict[str, Any] = {"folder": folder.column.name, "name": named.column.name}
        why = "the folder, a slash and the name"
        ending = _ending(match, samples, names)
        if ending is not None:
            whole_name = f"{named.expression} || '.' || ltrim({ending.expression}, '.')"
            sql = f"rtrim({folder.expression}, '/') || '/' || {whole_name}"
            found["object_key"] = Choice({"sql": sql}, f"{why}, and the ending", review=True)
        else:
            found["object_key"] = _as_stored(source, examples, holds, why, in_bucket=False)
        found["file_name"] = Choice(named.column.name)
    elif key is None:
        found["object_key"] = Choice({"sql": TODO}, "which column holds the key of the object in the bucket?")
        found["file_name"] = Choice(ABSENT if name is None else name.source)
    else:
        source = key.members
        examples = samples.values(key)
        first = {value.lstrip("/").partition("/")[0] for value in examples}
        in_bucket = whole and any(
            first == set(samples.values(Field(match.table, column)))
            for column in match.table.columns.values()
            if "bucket" in words(column.name)
        )
        below = _below_a_folder(key, examples[:_TRIED], holds, folders)
        inside = None if whole or below else _within_rows(key, match, samples, holds)
        found["object_key"] = below or inside or _as_stored(source, examples, holds, "", in_bucket=in_bucket)
        is_address = "url" in found["object_key"].source
        last = Choice(
            {**key.members, "url": True, "strip": ".*/"}
            if is_address
            else {"sql": f"substring({key.expression} FROM '[^/]*$')"},
            "the last part of the key",
        )
        found["file_name"] = last if name is None or name == key else Choice(name.source)
    for column in ("file_format", "type"):
        other = match.fields.get("type" if column == "file_format" else "file_format")
        found[column] = _media(match.fields.get(column) or other, named or key, samples)
    return found


def _folder(match: Match, samples: Samples, others: set[Field | None]) -> Field | None:
    for each in fields_of(match.table, samples):
        if each.family != "text" or each in others or each.path:
            continue
        said = set(tokens(each.says))
        values = samples.values(each)
        if "folder" in said or (
            "path" in said and values and not any("." in value.rpartition("/")[2] for value in values)
        ):
            return each
    return None


def _ending(match: Match, samples: Samples, names: list[str]) -> Field | None:
    """Return the column with the endings of names that have none."""
    fields = (each for each in fields_of(match.table, samples) if each.family == "text")
    bare = not any("." in name for name in names)
    return next((each for each in fields if share(samples.values(each), ENDING) == 1), None) if bare else None


def _as_stored(
    source: dict[str, Any], examples: list[str], holds: Callable[[str], bool] | None, why: str, *, in_bucket: bool
) -> Choice:
    """Return the key as the bucket has it: without an address, a slash or the bucket in front."""
    front, said, review = "", why, False
    if several := _buckets(examples, holds):
        named = f"the files lie in several buckets ({', '.join(several)})"
        return Choice({"sql": TODO}, f"{named}, and the toolkit reads one: what are their keys there?")
    if addresses := list(filter(_ADDRESS.match, examples)):
        inside = list(filter(_STORAGE.match, addresses))
        first = {value.split("/")[3] for value in inside if value.count("/") > _SLASHES}
        in_bucket, front = len(first) == 1, _ADDRESS.pattern
        if in_bucket:
            mixed = f"(?:{_STORAGE.pattern}){_BUCKET}|{front}"
            front = mixed if len(inside) < len(addresses) else front + _BUCKET
        said, review = "the key without the address", True
        said += " and the bucket in front" if in_bucket else " in front"
        if any(value.startswith("http") for value in examples):
            source["url"] = True
            said += ", up to a question mark, with %20 and the like decoded"
    elif in_bucket:
        front, said, review = "/*" + _BUCKET, "the key without the bucket in front", True
    elif examples and all(value.startswith("/") for value in examples):
        slash = 'the slash in front belongs to the key; where it does not, add strip = "/+"'
        said, review = "; ".join(filter(None, (why, slash))), True
    if "url" not in source and any(map(_ENCODED.search, examples)):
        if holds is None:
            said, review = "%20 and the like belong to the key; where they do not, add url = true", True
        elif not any(map(holds, examples[:_TRIED])) and any(holds(_path(each)) for each in examples[:_TRIED]):
            source["url"] = True
    if holds is not None and examples:
        some = examples[:: -(-len(examples) // _TRIED)]
        tried = [_path(value) if "url" in source else value for value in some]
        ways = (front, "", "/+", "/*" + _BUCKET, _ADDRESS.pattern, _ADDRESS.pattern + _BUCKET)
        held = {way: {each for each in tried if holds(re.sub(f"^(?:{way})", "", each))} for way in ways}
        known = max(ways, key=lambda way: len(held[way]))
        if not held[known]:
            said, review = "; ".join(filter(None, (said, f"none of {len(tried)} tried lies in the bucket"))), True
        elif set().union(*held.values()) > held[known]:
            shown = {way: f"{len(held[way])} with strip = {toml(way)}" for way in ways if held[way]}
            why = f"keys are written in several ways: of {len(tried)} tried the bucket knows "
            return Choice({"sql": TODO}, f"{why}{', '.join(shown.values())}; which key has each row?")
        else:
            review = review and known == front != ""
            said = why if known == "" else said if known == front else "as the bucket knows it"
            front = known
    source = source | ({"strip": front} if front else {})
    return Choice(source if len(source) > 1 else source["column"], said, review)


def _buckets(examples: list[str], holds: Callable[[str], bool] | None) -> list[str]:
    """Return the buckets that addresses name, where there are several and not all of them are known to be one."""
    named: dict[str, list[str]] = {}
    for address in filter(_ADDRESS.match, examples):
        host, _, path = address.partition("://")[2].partition("/")
        inside = bool(_STORAGE.match(address))
        bucket = path.partition("/")[0] if inside else host.partition(".")[0]
        named.setdefault(bucket, []).append(_path(path.partition("/")[2] if inside else path))
    known = holds is not None and all(any(map(holds, paths[:_TRIED])) for paths in named.values())
    return sorted(named) if len(named) > 1 and not known else []


def rows_of_a_bucket(
    match: Match, samples: Samples, holds: Callable[[str], bool] | None
) -> tuple[str, str] | None:
    """Return what is asked where a column names several buckets, and the condition of the toolkit's, if known."""
    key = match.fields.get("object_key")
    for column in match.table.columns.values() if key is not None else ():
        values = samples.values(Field(match.table, column)) if _BUCKETS & set(words(column.name)) else []
        if key is None or len(values) < _SEVERAL:
            continue
        known = []
        for condition in (f"{THIS}.{quoted(column.name)}::text = {literal(value)}" for value in values):
            keys = samples.texts(match.table, f"CASE WHEN {condition} THEN {key.expression} END")
            if holds is not None and any(holds(_path(each)) for each in keys[:_TRIED] if each):
                known.append(condition)
        asked = f"their files lie in several buckets, by {column.name} ({', '.join(values)})"
        one = f", that of {known[0]}" if len(known) == 1 else ""
        return f"{asked}, and the toolkit reads one{one}", known[0] if one else ""
    return None


def _path(address: str) -> str:
    return unquote(address.partition("?")[0])


def _within_rows(
    name: Field, match: Match, samples: Samples, holds: Callable[[str], bool] | None
) -> Choice | None:
    """Return the key of a file that is known by its name alone, under a folder that its row names."""
    said = set(tokens(name.name))
    if name.path or said & {"key", "path", "object"} or not samples.values(name):
        return None
    folders = [
        column.name
        for column in match.table.columns.values()
        if column is not name.column and (set(tokens(column.says)) & KEY_WORDS or column.unique)
    ]
    names = quoted(name.column.name)
    for folder in folders:
        query = f"SELECT {quoted(folder)}::text, {names}::text FROM {match.table.name} AS {THIS} LIMIT {_TRIED}"  # noqa: S608
        if holds is not None and any(holds(f"{one}/{two}") for one, two in samples.rows(query) if one and two):
            source = {"folder": folder, "name": name.column.name}
            return Choice(source, "as the bucket knows it: the row's folder and the name")
    if holds is not None and any(map(holds, samples.values(name)[:_TRIED])):
        return None
    likely = f'{{ folder = "{folders[0]}", name = "{name.column.name}" }}' if folders else "a folder and the name"
    return Choice({"sql": TODO}, f"a name without its folder; the key may be {likely}")


def _below_a_folder(
    key: Field, examples: list[str], holds: Callable[[str], bool] | None, folders: Sequence[str]
) -> Choice | None:
    """Return the key below one folder of the bucket, where the column leaves it out of all keys."""
    if holds is None or any(map(holds, examples)):
        return None
    tried = [each.lstrip("/") for each in examples[:_TRIED_BELOW]]
    known = [folder for folder in folders if any(holds(folder + each) for each in tried)]
    if len(known) > 1:
        named = ", ".join(known)
        return Choice({"sql": TODO}, f"the keys lie below several folders ({named}): which row's below which?")
    sql = f"{literal(''.join(known))} || ltrim({key.expression}, '/')"
    return Choice({"sql": sql}, f"as the bucket knows it: below {known[0]}", review=True) if known else None


def _media(found: Field | None, named: Field | None, samples: Samples) -> Choice:
    """Return the declared media type, or the one that the ending of the file's name stands for."""
    if found is not None:
        values = samples.values(found)
        if values and share(values, ENDING) > share(values, MEDIA):
            endings = {value: MEDIA_TYPES.get(value.strip().lstrip(".").lower(), TODO) for value in values}
            usual = {ending: kind for ending, kind in MEDIA_TYPES.items() if ending in {"pdf", "mp3", "wav"}}
            return Choice({**found.members, "codes": usual | endings}, "by the usual endings")
        return Choice(found.source)
    if named is None or named.path:
        return Choice(ABSENT)
    return Choice({"media_type_of": named.column.name}, "by the ending of the name")
