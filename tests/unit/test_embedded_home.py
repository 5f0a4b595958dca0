"""The folder of the embedded services: nobody else may exchange what lies in it."""

import stat
from pathlib import Path

from toolkit.storage.embedded.home import prepare


def test_a_home_that_anybody_may_write_is_closed_to_others(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    prepare(home)
    assert not home.stat().st_mode & stat.S_IWOTH


def test_a_home_with_the_sticky_bit_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    prepare(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
