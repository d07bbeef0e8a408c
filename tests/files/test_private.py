"""Folders that only this user can look into."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tidemill.errors import ConnectorError
from tidemill.files.private import make_private, own_directory


def test_this_users_folder_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old = os.umask(0)
    try:
        path = Path(own_directory("spool"))
    finally:
        os.umask(old)
    assert path.relative_to(tmp_path) == Path(f"tidemill-{os.getuid()}/spool")
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent)] == [0o700, 0o700]
    path.chmod(0o755)
    own_directory("spool")
    assert path.stat().st_mode & 0o777 == 0o700


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConnectorError, match="is not a folder"):
        make_private(str(tmp_path / "x"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectorError, match="is not a folder"):
        make_private(str(tmp_path / "file"))
