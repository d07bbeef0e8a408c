"""The files that make up a state: its manifests and the runs that they name, with length and checksum."""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from tidemill.state.manifest import read_manifest
from tidemill.state.storage import Published, StateFiles


def named_files(files: StateFiles, manifests: Iterable[str]) -> dict[str, Published]:
    """The files by name below the state root. Reads the manifests, but no runs."""
    files_by_name: dict[str, Published] = {}
    for name in sorted(set(manifests)):
        data = files.read_bytes(name)
        files_by_name[name] = Published(len(data), xxhash.xxh3_64_intdigest(data))
        for run in read_manifest(files, name).runs:
            files_by_name[run.path] = Published(run.size, run.checksum)
    return files_by_name
