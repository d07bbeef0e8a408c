"""Removes state files that nothing names any more.

Guarantee: a file named by one of the kept manifests, directly or as a run, is never removed. Cost:
one listing of a partition's folder and one read per kept manifest.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles


def remove_unnamed_files(root: str, operator: str, partition: int, keep: Iterable[str]) -> list[str]:
    """Removes all files of one operator partition but the manifests in ``keep`` and their runs.

    Returns the names that went, relative to ``root``.
    """
    storage = StateFiles.open(root)
    named: set[str] = set()
    for manifest in keep:
        named.add(manifest)
        named.update(run.path for run in read_manifest(storage, manifest).runs)
    gone = [name for name in storage.names(f"{operator}/{partition}") if name not in named]
    for name in gone:
        storage.remove(name)
    return gone
