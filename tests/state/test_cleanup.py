"""Clean-up removes what no kept manifest names, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tidemill.changelog.hashing import mix
from tidemill.errors import StateError
from tidemill.state.cleanup import StateCollector
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore

NUMBERS = Layout(name="numbers", keys=(pa.field("k", pa.int64()),))


def write(root: Path, base: str | None, epoch: int, keys: list[int], partition: int = 0) -> str:
    store = StateStore.open(str(root), "op", partition, base, epoch)
    hashes = mix(np.array(keys, np.uint64))
    order = np.argsort(hashes)
    store.table(NUMBERS).put(hashes[order], {"k": pa.array(np.array(keys)[order])})
    manifest = store.flush()
    assert manifest is not None
    return manifest


def test_old_manifests_and_merged_runs_go(tmp_path: Path) -> None:
    first = write(tmp_path, None, 0, list(range(100)))
    second = write(tmp_path, first, 1, [5])
    other = write(tmp_path, None, 0, [1], partition=1)
    (tmp_path / "op" / "0" / "1.0.0.arrow.tmp-dead").write_bytes(b"left by a crash")
    collector = StateCollector(StateFiles.open(str(tmp_path)))
    gone = collector.collect({"op": [second, other]}, [("op", 0)], 1)
    assert sorted(gone) == ["op/0/0.0.manifest.json", "op/0/1.0.0.arrow.tmp-dead"]
    assert (tmp_path / "op" / "0" / "0.0.0.0.arrow").is_file()
    assert (tmp_path / other).is_file()
    third = write(tmp_path, second, 2, list(range(100)))
    later = tmp_path / "op" / "0" / "3.0-7.0.0.arrow"
    later.write_bytes(b"of another process that took the job over")
    collector.collect({"op": [third, other]}, [("op", 0)], 2)
    later.unlink()
    names = sorted(f.name for f in (tmp_path / "op" / "0").iterdir())
    assert names == ["2.0.0.0.arrow", "2.0.manifest.json"]


def test_what_a_task_has_told_of_its_manifest_is_not_read(tmp_path: Path) -> None:
    first = write(tmp_path, None, 0, list(range(100)))
    second = write(tmp_path, first, 1, list(range(100)))
    files = read_manifest(StateFiles.open(str(tmp_path)), second).files
    told, asking = (StateCollector(StateFiles.open(str(tmp_path))) for _ in range(2))
    (tmp_path / second).rename(tmp_path / "elsewhere")
    told.know(second, files)
    assert set(told.collect({"op": [second]}, [("op", 0)], 1)) == {"op/0/0.0.0.0.arrow", first}
    with pytest.raises(StateError):
        asking.collect({"op": [second]}, [("op", 0)], 1)


def test_a_kept_older_manifest_keeps_its_runs(tmp_path: Path) -> None:
    first = write(tmp_path, None, 0, [1, 2])
    second = write(tmp_path, first, 1, [1, 2])
    assert StateCollector(StateFiles.open(str(tmp_path))).sweep([first, second]) == []
    again = StateStore.open(str(tmp_path), "op", 0, first, 2)
    hashes = np.sort(mix(np.array([1, 2], np.uint64)))
    keys = pa.array([1, 2] if mix(np.array([1], np.uint64))[0] == hashes[0] else [2, 1])
    assert again.table(NUMBERS).lookup(hashes, [keys]).there.all()
