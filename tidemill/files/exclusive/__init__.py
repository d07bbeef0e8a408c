"""Puts small files that must not be there: of all who try, on whatever machine, one succeeds.

Where a file appears it is whole and durable. Local and mounted disks (``local``): a hard link to a file that
is on disk already. HDFS (``hdfs``): a rename, which the namenode does once. Object stores (``s3``, ``gcs``):
a request under the condition that there is no such object, which Arrow's file systems cannot say; it is sent
by other libraries, which only drivers need.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemill.files.exclusive.api import Exclusive, OutcomeUnknownError
from tidemill.files.exclusive.gcs import GcsExclusive
from tidemill.files.exclusive.hdfs import HdfsExclusive
from tidemill.files.exclusive.local import LocalExclusive, is_temporary
from tidemill.files.exclusive.s3 import S3Exclusive
from tidemill.files.storage import Storage
from tidemill.files.systems import GCS_SCHEME, HDFS_SCHEMES, S3_SCHEMES

_STORES: dict[str, Callable[[Storage], Exclusive]] = {
    **dict.fromkeys(S3_SCHEMES, S3Exclusive.of),
    **dict.fromkeys(HDFS_SCHEMES, HdfsExclusive.of),
    GCS_SCHEME: GcsExclusive.of,
}


def exclusive(storage: Storage) -> Exclusive:
    """For files below ``storage``. SetupError: a library is missing."""
    return LocalExclusive(storage=storage) if storage.is_local else _STORES[storage.scheme](storage)


__all__ = ["Exclusive", "OutcomeUnknownError", "exclusive", "is_temporary"]
