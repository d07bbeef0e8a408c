"""Where a local Spark keeps its shuffle files and blocks: a folder per process that only this user can open.

Spark removes its files when it ends; one that was killed leaves them. Each process holds a lock on its
folder for its life, so the next start knows which are left over, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from typing import TextIO

from tidemill.files.private import own_directory

_LOCK = "lock"
_HELD: list[TextIO] = []
"""Locks are given back when the process ends, however it ends."""


def local_directory() -> str:
    """A new folder for this process; those of processes that are gone are removed."""
    root = own_directory("spark")
    _remove_left_over(root)
    made = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root)
    lock = open(os.path.join(made, _LOCK), "w", encoding="utf-8")  # noqa: SIM115 - held for the process's life
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _HELD.append(lock)
    return made


def _remove_left_over(root: str) -> None:
    for entry in os.scandir(root):
        try:
            with open(os.path.join(entry.path, _LOCK), encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue  # in use, or being made
