"""Folders that only this user can look into."""

from __future__ import annotations

import os
import stat
import tempfile

from tidemill.errors import ConnectorError

_PRIVATE = 0o700
OWN = f"tidemill-{os.getuid()}"
"""This user's folder below the temporary directory."""


def own_directory(name: str) -> str:
    """The path of this user's folder ``name`` below the temporary directory, with mode 0700. ConnectorError
    if another user owns it, who could read or change its files."""
    path = os.path.join(tempfile.gettempdir(), OWN, name)
    for folder in (os.path.dirname(path), path):
        make_private(folder)
    return path


def make_private(path: str) -> None:
    """Creates a folder that only this user can access, or checks an existing one."""
    try:
        os.mkdir(path, _PRIVATE)
        return
    except FileExistsError:
        status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise ConnectorError(f"'{path}' is not a folder.", hint="Tidemill needs a folder there.")
    if status.st_uid != os.getuid():
        raise ConnectorError(
            f"'{path}' belongs to another user.",
            hint="Set TMPDIR to a folder that only this user can write to.",
        )
    if status.st_mode & 0o077:
        os.chmod(path, _PRIVATE)
