"""In HDFS: a rename of a file that is written already. The namenode does it in one step, and never onto a
name that is there. Arrow's own rename removes what is there first; so Hadoop's client, which Arrow has loaded
by then, is asked for it directly."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit

from tidemill.errors import SetupError
from tidemill.files.exclusive.api import OutcomeUnknownError
from tidemill.files.exclusive.local import TEMPORARY
from tidemill.files.storage import Storage

_LIBRARY = "libhdfs.so"
_PLACES = (("ARROW_LIBHDFS_DIR", ""), ("HADOOP_HOME", "lib/native"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HdfsExclusive:
    """A file that is closed is on its datanodes; whether on their disks is ``dfs.datanode.synconclose``'s."""

    storage: Storage

    @classmethod
    def of(cls, storage: Storage) -> Self:
        return cls(storage=storage)

    def put(self, relative: str, data: bytes) -> None:
        folder, _, name = relative.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex[:8]}{TEMPORARY}".lstrip("/")
        try:
            with self.storage.create(temporary) as stream:
                stream.write(data)
            self._rename(temporary, relative)
        finally:
            with contextlib.suppress(OSError):
                self.storage.remove(temporary)

    def _rename(self, temporary: str, relative: str) -> None:
        """What a failed rename has done is seen by who is there: its answer may be what was lost."""
        failed = _renamed(self.storage, temporary, relative)
        if not failed:
            return
        said = OSError(failed, os.strerror(failed), self.storage.full_path(relative))
        try:
            done = self.storage.stat(temporary) is None
            there = self.storage.stat(relative) is not None
        except OSError as e:
            raise OutcomeUnknownError(*said.args) from e
        if done and there:
            return
        if there:
            raise FileExistsError(errno.EEXIST, "File exists", self.storage.full_path(relative))
        raise said


def _renamed(storage: Storage, old: str, new: str) -> int:
    """0, or the number of the error."""
    parts = urlsplit(storage.location)
    paths = (os.fsencode(storage.absolute(path)) for path in (old, new))
    connection = _connection(f"{parts.scheme}://{parts.netloc}")
    ctypes.set_errno(0)
    if _client().hdfsRename(connection, *paths) == 0:
        return 0
    return ctypes.get_errno() or errno.EIO


@cache
def _connection(name_node: str) -> ctypes.c_void_p:
    """Kept as long as the process."""
    client = _client()
    builder = ctypes.c_void_p(client.hdfsNewBuilder())
    name = name_node.encode()  # the builder keeps no copy
    client.hdfsBuilderSetNameNode(builder, name)
    connection = client.hdfsBuilderConnect(builder)
    if not connection:
        raise OSError(ctypes.get_errno() or errno.EIO, f"Cannot connect to '{name_node}'")
    return ctypes.c_void_p(connection)


@cache
def _client() -> Any:
    found = [os.path.join(os.environ[key], below, _LIBRARY) for key, below in _PLACES if os.environ.get(key)]
    for path in (*found, _LIBRARY):
        with contextlib.suppress(OSError):
            client = ctypes.CDLL(path, use_errno=True)
            client.hdfsNewBuilder.restype = client.hdfsBuilderConnect.restype = ctypes.c_void_p
            client.hdfsBuilderSetNameNode.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
            client.hdfsBuilderConnect.argtypes = (ctypes.c_void_p,)
            client.hdfsRename.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
            return client
    raise SetupError(f"Hadoop's native client ({_LIBRARY}) is not found.", hint="Set HADOOP_HOME.")
