"""In HDFS: a rename of a file that is written already. The namenode does it in one step, and never onto a
name that is there."""

from __future__ import annotations

import contextlib
import errno
import uuid
from dataclasses import dataclass

from tidemill.files.exclusive.api import OutcomeUnknownError
from tidemill.files.exclusive.local import TEMPORARY
from tidemill.files.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsExclusive:
    """A file that is closed is on its datanodes; whether on their disks is ``dfs.datanode.synconclose``'s."""

    storage: Storage

    def put(self, relative: str, data: bytes) -> None:
        folder, _, name = relative.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}{TEMPORARY}".lstrip("/")
        try:
            with self.storage.create(temporary) as stream:
                stream.write(data)
            self._rename(temporary, relative, data)
        finally:
            with contextlib.suppress(OSError):
                self.storage.remove(temporary)

    def _rename(self, temporary: str, relative: str, data: bytes) -> None:
        """What a failed rename has done is seen by who is there."""
        try:
            self.storage.system.move(self.storage.absolute(temporary), self.storage.absolute(relative))
        except OSError as e:
            try:
                there = self.storage.stat(relative) is not None
                mine = there and self.storage.stat(temporary) is None
            except OSError as again:
                raise OutcomeUnknownError(errno.EIO, str(e)) from again
            if mine and self.storage.read_bytes(relative) == data:
                return
            if there:
                raise FileExistsError(errno.EEXIST, "File exists", self.storage.shown(relative)) from e
            raise
