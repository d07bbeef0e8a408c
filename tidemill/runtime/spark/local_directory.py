"""Where a local Spark keeps its shuffle files and blocks: a folder per process that only this user can open.

Spark removes its files when it ends; one that was killed leaves them. Each process holds a lock on its
folder for its life, so the next start knows which are left over, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator

from tidemill.errors import SetupError
from tidemill.files.private import own_directory

_LOCK = "lock"
_MAKING = ".making"
"""Held by who makes or removes folders: one that has no lock yet is not left over."""


def local_directory() -> str:
    """A new folder for this process; those of processes that are gone are removed."""
    root = own_directory("spark")
    with open(os.path.join(root, _MAKING), "w", encoding="utf-8") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        _remove_left_over(root)
        made = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root)
        # Never closed: the lock is given back when the process ends, however it ends.
        lock = os.open(os.path.join(made, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return made


def check_local_directories(given: str) -> None:
    """SetupError where Spark can write to none of the folders, separated by commas: its JVM would end without
    a word that reaches us. Some that fail are left out by Spark, as disks may."""
    folders = [folder.strip() for folder in given.split(",") if folder.strip()]
    failures = [failure for folder in folders for failure in _failure(folder)]
    if failures and len(failures) == len(folders):
        raise SetupError(
            f"Spark has no folder that it can write temporary files to: {'; '.join(failures)}.",
            hint="Set 'spark.local.dir' (or SPARK_LOCAL_DIRS, which wins) to a folder on a large disk.",
        )


def _failure(folder: str) -> Iterator[str]:
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as e:
        yield f"'{folder}': {e.strerror}"


def _remove_left_over(root: str) -> None:
    for entry in os.scandir(root):
        try:
            with open(os.path.join(entry.path, _LOCK), encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue  # in use, or being made
