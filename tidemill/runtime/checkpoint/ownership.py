"""Ownership of a checkpoint directory: one process may write at a time, and it is the latest that took the
directory.

1. On a local or mounted disk an ``flock`` on the file ``lock`` keeps out other processes of the machine,
   and of all machines if the file system shares locks.
2. The fencing token: every owner puts the record ``owners/<n>``, with the first free n. Before each record
   an owner looks for ``owners/<n + 1>``. If it exists, the owner stops: another process took it for dead, or
   its file system does not know the lock. These records are never removed, and no listing decides anything:
   a late listing only makes a new owner try more numbers. The token is also part of all names of state files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TextIO

from tidemill.errors import CommitUnknownError, NotSupportedError, OwnershipError
from tidemill.files.exclusive import OutcomeUnknownError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.records import Records, said

_OWNERS = "owners"


class Ownership:
    """Held until ``close``; ``token`` is larger than that of every owner before."""

    def __init__(self, records: Records, token: int, lock: TextIO | None) -> None:
        self._records = records
        self._lock = lock
        self.token = token

    @classmethod
    def take(cls, records: Records) -> Ownership:
        """OwnershipError: another process of this machine has it. OSError: it cannot be written.
        NotSupportedError: its store cannot tell two owners apart."""
        lock = None
        if records.storage.is_local:
            os.makedirs(records.storage.absolute(_OWNERS), mode=0o700, exist_ok=True)
            lock = _locked(records)
        try:
            return cls(records, _next_token(records), lock)
        except BaseException:
            if lock is not None:
                lock.close()
            raise

    @property
    def is_locked(self) -> bool:
        """Whether the lock says that the owner before is gone: it ran on this machine. Of a lock on another
        one, even of the same disk, not every file system tells."""
        return self._lock is not None and self._owner_before.get("machine", _machine()) == _machine()

    @cached_property
    def _owner_before(self) -> dict[str, Any]:
        """What its record says; empty where there was none."""
        return {} if self.token == 1 else {"machine": "", **_owner_of(self._records, self.token - 1)}

    @property
    def is_newest(self) -> bool:
        return not self._records.exists(_owner(self.token + 1))

    def check(self) -> None:
        """OwnershipError if somebody else has taken the directory since."""
        if not self.is_newest:
            raise OwnershipError(
                f"The checkpoint directory '{self._records.storage.full_path('')}' was taken over by another "
                f"job ({_about(self._records, self.token + 1)})",
                hint="This job stops. Give each job a checkpoint directory of its own.",
            )

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


@contextmanager
def undisturbed(storage: Storage) -> Iterator[None]:
    """Nobody of this machine takes a local checkpoint directory meanwhile; OwnershipError where somebody has
    it. An object store cannot tell: what goes meanwhile is missed by whoever reads it."""
    lock = _locked(Records.open(storage)) if storage.is_local else None
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _locked(records: Records) -> TextIO:
    root = records.storage.full_path("")
    lock = open(records.storage.absolute("lock"), "a", encoding="utf-8")  # noqa: SIM115 - held for the job's life
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        lock.close()
        if e.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        raise OwnershipError(
            f"The checkpoint directory '{root}' is in use by another running job "
            f"({_about(records, _last(records))})",
            hint="Stop that job first, or give this one a directory of its own.",
        ) from e
    return lock


def _next_token(records: Records) -> int:
    me: dict[str, Any] = {"host": socket.gethostname(), "machine": _machine(), "process": os.getpid()}
    me["start"] = uuid.uuid4().hex
    token = _last(records)
    while True:
        token += 1
        try:
            records.exclusive.put(_owner(token), json.dumps(me).encode())
            break
        except FileExistsError:
            continue
        except OutcomeUnknownError as e:
            raise CommitUnknownError(
                f"It is not known whether this job has '{records.storage.full_path('')}': {said(e)}",
                hint="Start the job again once the cause is gone.",
            ) from e
    if not records.storage.is_local:
        _check_condition(records, token, {**me, "start": uuid.uuid4().hex})
    return token


def _check_condition(records: Records, token: int, me: dict[str, Any]) -> None:
    """NotSupportedError where the record, which is there, can be put again: of two jobs both would commit."""
    try:
        records.exclusive.put(_owner(token), json.dumps(me).encode())
    except FileExistsError:
        return
    raise NotSupportedError(
        f"The store of '{records.storage.full_path('')}' overwrites a file even if told not to: it cannot "
        "keep two jobs out of one directory.",
        hint="Keep checkpoints in a store with conditional writes, or on a mounted file system. Tables may "
        "stay in this store.",
    )


def _last(records: Records) -> int:
    return max(records.numbered(_OWNERS, ""), default=0)


def _owner(token: int) -> str:
    return f"{_OWNERS}/{token}"


def _about(records: Records, token: int) -> str:
    owner = _owner_of(records, token)
    if "process" not in owner or "host" not in owner:
        return "its owner is not known"
    return f"process {owner['process']} on {owner['host']}"


def _owner_of(records: Records, token: int) -> dict[str, Any]:
    """What an owner says of itself; empty where that cannot be read."""
    try:
        owner = json.loads(records.storage.read_bytes(_owner(token)))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {}


@cache
def _machine() -> str:
    """The same for all processes that see each other's locks: those of one kernel since it was started."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()
