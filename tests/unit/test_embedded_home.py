"""The folder of the embedded services, and drafts: nobody else may exchange or redirect what lies in them."""

import stat

from toolkit.atomic_files import PrivateFolder
from toolkit.embedded.servers import prepare


def test_a_home_that_anybody_may_write_is_closed_to_others(tmp_path):
    tmp_path.chmod(0o777)
    prepare(tmp_path)
    assert not tmp_path.stat().st_mode & stat.S_IWOTH


def test_what_others_call_a_draft_is_left_alone(tmp_path):
    elsewhere, parent = tmp_path / "elsewhere", tmp_path / "shared"
    elsewhere.mkdir()
    parent.mkdir()
    (parent / ".toolkit-draft-planted").symlink_to(elsewhere)
    with PrivateFolder(parent) as folder:
        assert folder.is_dir()
    assert list(elsewhere.iterdir()) == []
