"""Find the key, the name and the type of a file: in one column, several, or parts of one."""

import re
from collections.abc import Callable
from typing import Any, Final

from toolkit.domain.evidence import MEDIA_TYPES
from toolkit.storage.service_map.draft.choices import Choice
from toolkit.storage.service_map.draft.matching import Match, fields_of
from toolkit.storage.service_map.draft.samples import ENDING, MEDIA, Field, Samples, share
from toolkit.storage.service_map.draft.vocabulary import tokens
from toolkit.storage.service_map.expressions import THIS, literal, quoted
from toolkit.storage.service_map.model import TODO

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]+/")
_STORAGE: Final = re.compile(r"https?://(?:s3[.-]|[^/]*\bminio|storage\.googleapis\.)[^/]*/|https?://[^/]+:9000/")
_SLASHES: Final = 3
_TRIED: Final = 10


def file_parts(match: Match, samples: Samples, holds: Callable[[str], bool] | None) -> dict[str, Choice]:
    """Return the choices for ``object_key``, ``file_name``, ``file_format`` and ``type``."""
    key, name = match.fields.get("object_key"), match.fields.get("file_name")
    folder = _folder(match, samples, {key, name})
    named = name or key
    found: dict[str, Choice] = {}
    whole = key is not None and any("/" in value for value in samples.values(key))
    if folder is not None and named is not None and not whole:
        folders, names = samples.values(folder), samples.values(named)
        examples = [f"{one.rstrip('/')}/{two}" for one in folders[:3] for two in names[:4]]
        source: dict[str, Any] = {"folder": folder.column.name, "name": named.column.name}
        found["object_key"] = _stripped(source, examples, holds, "the folder, a slash and the name")
        found["file_name"] = Choice(named.column.name)
    elif key is None:
        found["object_key"] = Choice({"sql": TODO}, "which column holds the key of the object in the bucket?")
        found["file_name"] = _named_by(name)
    else:
        source = {"column": key.column.name} | ({"json_path": list(key.path)} if key.path else {})
        found["object_key"] = _stripped(source, samples.values(key), holds, "")
        found["file_name"] = _last_part(key) if name is None or name == key else _named_by(name)
    for column in ("file_format", "type"):
        other = match.fields.get("type" if column == "file_format" else "file_format")
        found[column] = _media(match.fields.get(column) or other, named or key, samples)
    return found


def _folder(match: Match, samples: Samples, others: set[Field | None]) -> Field | None:
    for each in fields_of(match.table, samples):
        if each.family != "text" or each in others or each.path:
            continue
        said = set(tokens(each.name))
        values = samples.values(each)
        if "folder" in said or (
            "path" in said and values and not any("." in value.rpartition("/")[2] for value in values)
        ):
            return each
    return None


def _stripped(
    source: dict[str, Any], examples: list[str], holds: Callable[[str], bool] | None, why: str
) -> Choice:
    """Return the key as it is, or without what the bucket does not know: an address, a slash in front."""
    if examples and all(_ADDRESS.match(value) for value in examples):
        return _without_address(source, examples, holds)
    if holds is not None and examples and all(value.startswith("/") for value in examples):
        tried = examples[:_TRIED]
        if not any(map(holds, tried)) and any(holds(value.lstrip("/")) for value in tried):
            source["strip"] = "/+"
            return Choice(source, "in the bucket the keys have no slash in front")
    if examples and all(value.startswith("/") for value in examples):
        slash = 'the slash in front belongs to the key; where it does not, add strip = "/+"'
        return Choice(source, "; ".join(filter(None, (why, slash))), review=True)
    return Choice(source if len(source) > 1 else source["column"], why)


def _without_address(source: dict[str, Any], examples: list[str], holds: Callable[[str], bool] | None) -> Choice:
    """Return the key inside an address; a host that is the storage is followed by the bucket."""
    address, bucket = _ADDRESS.pattern, "[^/]+/"
    first = {value.split("/")[3] for value in examples if value.count("/") > _SLASHES}
    in_front = all(_STORAGE.match(value) for value in examples) and len(first) == 1
    why = "the key without the address" + (" and the bucket in front" if in_front else " in front")
    if holds is not None:
        tried = [re.sub(f"^{address}", "", value).partition("?")[0] for value in examples[:_TRIED]]
        if not any(map(holds, tried)) and any(holds(value.partition("/")[2]) for value in tried):
            in_front, why = True, "the key as the bucket knows it, without the address and the bucket in front"
    source["strip"] = address + (bucket if in_front else "")
    if any("%" in value for value in examples):
        why += "; characters written as % and two digits are not decoded"
    if not any("?" in value for value in examples):
        return Choice(source, why, review=True)
    if "column" not in source or "json_path" in source:
        return Choice({"sql": TODO}, f"{why}; what follows the question mark is no part of it")
    text = f"split_part({THIS}.{quoted(source['column'])}::text, '?', 1)"
    sql = f"regexp_replace({text}, {literal('^' + source['strip'])}, '')"
    return Choice({"sql": sql}, f"{why}, up to the question mark", review=True)


def _named_by(name: Field | None) -> Choice:
    if name is None:
        return Choice({"absent": True})
    return Choice({"column": name.column.name, "json_path": list(name.path)} if name.path else name.column.name)


def _last_part(key: Field) -> Choice:
    return Choice({"sql": f"substring({key.expression} FROM '[^/]*$')"}, "the last part of the key")


def _media(found: Field | None, named: Field | None, samples: Samples) -> Choice:
    """Return the declared media type, or the one that the ending of the file's name stands for."""
    if found is not None:
        source = {"column": found.column.name} | ({"json_path": list(found.path)} if found.path else {})
        values = samples.values(found)
        if values and share(values, ENDING) > share(values, MEDIA):
            endings = {value: MEDIA_TYPES.get(value.strip().lstrip(".").lower(), TODO) for value in values}
            usual = {ending: kind for ending, kind in MEDIA_TYPES.items() if ending in {"pdf", "mp3", "wav"}}
            return Choice({**source, "codes": usual | endings}, "by the usual endings")
        return Choice(source if found.path else found.column.name)
    if named is None or named.path:
        return Choice({"absent": True})
    return Choice({"media_type_of": named.column.name}, "by the ending of the name")
