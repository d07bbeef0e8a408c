"""Jobs on a cluster: what its machines share."""

from __future__ import annotations

from tidemill.config.option import Option

SHARED_FILESYSTEM = Option(
    key="tidemill.shared-filesystem",
    kind=str,
    default="",
    own=True,
    doc="Local paths that the driver and all workers of a cluster have mounted alike: `true` for all, or "
    "folders separated by commas. Jobs on a cluster are refused other local paths.",
)
TEMPORARY_DIRECTORY = Option(
    key="tidemill.temporary-directory",
    kind=str,
    default="",
    own=True,
    doc="Where a job without a checkpoint directory keeps its state while it runs; on a cluster a URI or a "
    "shared path. Unset: the system's temporary folder, and on a cluster such jobs are refused.",
)
OPTIONS = (SHARED_FILESYSTEM, TEMPORARY_DIRECTORY)
