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
    """The path of this user's folder for ``name`` below the temporary directory, mode 0700. ConnectorError
    where somebody else has made it: what is written there could be read or changed."""
    path = os.path.join(tempfile.gettempdir(), OWN, name)
    for folder in (os.path.dirname(path), path):
        make_private(folder)
    return path


def make_private(path: str) -> None:
    """Makes a folder that only this user can look into, or makes sure that it is one."""
    try:
        os.mkdir(path, _PRIVATE)
        return
    except FileExistsError:
        found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise ConnectorError(f"'{path}' is not a folder.", hint="Tidemill needs a folder there.")
    if found.st_uid != os.getuid():
        raise ConnectorError(
            f"'{path}' belongs to another user.",
            hint="Set TMPDIR to a folder that only this user can write to.",
        )
    if found.st_mode & 0o077:
        os.chmod(path, _PRIVATE)
