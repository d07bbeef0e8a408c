"""The package itself, as an archive from which a cluster's workers import it.

The name of the archive is a digest of its content. So workers and driver run exactly the same code,
whatever is installed on the workers, and an archive that was made once is used again.
"""

from __future__ import annotations

import hashlib
import os
import uuid
import zipfile
from functools import cache
from pathlib import Path

from tidemill.files.private import own_directory

_PACKAGE = Path(__file__).parents[2]
_BEGINNING = (1980, 1, 1, 0, 0, 0)


@cache
def package_archive() -> str:
    """The path of the archive on this machine."""
    sources = sorted([*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.so")])
    contents = {str(path.relative_to(_PACKAGE.parent)): path.read_bytes() for path in sources}
    path = os.path.join(own_directory("packages"), f"{_PACKAGE.name}-{_digest(contents)}.zip")
    if not os.path.exists(path):
        _write(path, contents)
    return path


def _digest(contents: dict[str, bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, data in contents.items():
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _write(path: str, contents: dict[str, bytes]) -> None:
    """Whole or not at all: another process may be about to read it."""
    temporary = f"{path}.{uuid.uuid4().hex}"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _BEGINNING), data, zipfile.ZIP_DEFLATED)
    os.replace(temporary, path)
