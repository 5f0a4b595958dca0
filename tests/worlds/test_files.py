"""What is said of each file of the catalogue, and of two of them at once."""

import random

import pytest

from tests.worlds.files import COUNTS, WORLDS
from toolkit.contract.evidence import FileKind
from toolkit.evidence.inspection import Inspector, inspect_file


def said(found):
    if found.kind is FileKind.OTHER:
        return found.media_type, ()
    return found.problem or COUNTS, tuple(map(str, found.active_parts))


@pytest.mark.parametrize("world", WORLDS, ids=[each.name for each in WORLDS])
def test_what_is_said_of_a_file(world, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(world.make())
    assert said(inspect_file(path)) == (world.said, world.parts)


def test_one_file_says_nothing_about_the_next(tmp_path):
    """In a process of its own, in any order: a reader keeps nothing of the file before."""
    with Inspector() as inspector:
        for number, world in enumerate(random.Random(5).sample(WORLDS, 12)):
            path = tmp_path / str(number)
            path.write_bytes(world.make())
            with path.open("rb") as file:
                assert said(inspector.inspect(file)) == (world.said, world.parts), world.name
