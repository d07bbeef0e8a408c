"""Jobs on a cluster: what its machines share."""

from __future__ import annotations

from tidemill.config.option import Option

SHARED_FILESYSTEM = Option(
    key="tidemill.shared-filesystem",
    kind=str,
    default="",
    own=True,
    doc="Local paths that the driver and all workers of a cluster have mounted alike: `true` for all, "
    "or folders separated by commas. On a cluster Tidemill refuses all other local paths.",
)
TEMPORARY_DIRECTORY = Option(
    key="tidemill.temporary-directory",
    kind=str,
    default="",
    own=True,
    doc="The directory for the state of a running job without a checkpoint directory; on a cluster a "
    "URI or a shared path. Unset: the system's temporary folder; on a cluster such jobs are "
    "refused.",
)
OPTIONS = (SHARED_FILESYSTEM, TEMPORARY_DIRECTORY)
