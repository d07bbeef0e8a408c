"""Who may write to a checkpoint directory: one process at a time, and the latest one that took it.

1. An ``flock`` on the file ``lock`` keeps out other processes of the machine (and of all machines on file
systems that hand locks around). 2. The fencing token: every owner makes the file ``owners/<n>`` with the next
free n, exclusively. Before each record an owner looks for a higher number: one that was taken for dead, or
whose lock its file system does not know, stops there. The token is also part of all names of state files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from pathlib import Path
from typing import TextIO

from tidemill.errors import StateError


class Ownership:
    """Held until ``close``; ``token`` is larger than that of every owner before."""

    def __init__(self, root: Path, token: int, lock: TextIO) -> None:
        self._root = root
        self._lock = lock
        self.token = token

    @classmethod
    def take(cls, root: Path) -> Ownership:
        """StateError: another process of this machine has it. OSError: it cannot be written."""
        owners = root / "owners"
        owners.mkdir(mode=0o700, exist_ok=True)
        lock = _locked(root)
        try:
            token = _next_token(owners)
        except BaseException:
            lock.close()
            raise
        return cls(root, token, lock)

    @property
    def is_newest(self) -> bool:
        return self._newest() <= self.token

    def check(self) -> None:
        """StateError if somebody else has taken the directory since."""
        newest = self._newest()
        if newest > self.token:
            raise StateError(
                f"The checkpoint directory '{self._root}' was taken over by another job "
                f"({_said(self._root / 'owners' / str(newest))})",
                hint="This job stops. Give each job a checkpoint directory of its own.",
            )

    def close(self) -> None:
        self._lock.close()

    def _newest(self) -> int:
        return max(_tokens(self._root / "owners"), default=0)


def _locked(root: Path) -> TextIO:
    lock = open(root / "lock", "a", encoding="utf-8")  # noqa: SIM115 - held for the job's life
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        lock.close()
        if e.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        owner = max(_tokens(root / "owners"), default=0)
        raise StateError(
            f"The checkpoint directory '{root}' is in use by another running job "
            f"({_said(root / 'owners' / str(owner))})",
            hint="Stop that job first, or give this one a directory of its own.",
        ) from e
    return lock


def _next_token(owners: Path) -> int:
    taken = _tokens(owners)
    token = max(taken, default=0)
    while True:
        token += 1
        try:
            with open(owners / str(token), "x", encoding="utf-8") as f:
                json.dump({"host": socket.gethostname(), "process": os.getpid()}, f)
            break
        except FileExistsError:
            continue
    for old in taken:
        (owners / str(old)).unlink(missing_ok=True)
    return token


def _tokens(owners: Path) -> list[int]:
    return [int(name) for name in os.listdir(owners) if name.isdigit()]


def _said(path: Path) -> str:
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        return f"process {owner['process']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "its owner is not known"
