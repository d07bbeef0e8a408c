"""Damage is seen, and said with the file, the operator and what is still whole: nothing reads on."""

from __future__ import annotations

import builtins
import errno
import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.state.layouts import operators_layouts
from tests.state.random_values import random_value
from tidemill.changelog.hashing import mix
from tidemill.errors import StateError
from tidemill.state.layout import Layout
from tidemill.state.manifest import read_manifest
from tidemill.state.record import decode_record, encode_record
from tidemill.state.run import WEIGHT
from tidemill.state.storage import StateFiles
from tidemill.state.store import StateStore

TEXTS = Layout(name="texts", keys=(pa.field("k", pa.int64()),), columns=(pa.field("v", pa.string()),))
KEYS = np.arange(500)
HASHES = mix(KEYS.astype(np.uint64))
ORDER = np.argsort(HASHES)


def write(root: Path) -> str:
    store = StateStore.open(str(root), "counts", 3, None, 8)
    values = pa.array([f"value {k}" for k in KEYS[ORDER]])
    store.table(TEXTS).put(HASHES[ORDER], {"k": pa.array(KEYS[ORDER]), "v": values})
    manifest = store.flush()
    assert manifest is not None
    return manifest


def read(root: Path, manifest: str) -> list[str]:
    store = StateStore.open(str(root), "counts", 3, manifest, 9)
    found = store.table(TEXTS).lookup(HASHES[ORDER], [pa.array(KEYS[ORDER])])
    values: list[str] = found.array("v").to_pylist()
    return values


def test_every_flipped_bit_is_seen(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """In the runs of every layout there is, and in their manifest."""
    chance = random.Random(pytestconfig.getoption("--seed"))
    layouts = {str(n): replace(found, name=str(n)) for n, found in enumerate(operators_layouts().values())}
    manifest = _write_some(tmp_path, list(layouts.values()), chance)
    tables = read_manifest(StateFiles.open(str(tmp_path)), manifest).tables
    owners = {run.path: layouts[name] for name, table in tables.items() for (run,) in table.layers}
    assert len(owners) == len(layouts)
    flips = -(-pytestconfig.getoption("--flips") // (len(owners) + 1))
    for path, layout in {manifest: layouts["0"], **owners}.items():
        file, whole = tmp_path / path, _read_all(tmp_path, manifest, layout)
        contents = file.read_bytes()
        for place in [0, 8 * len(contents) - 1, *chance.choices(range(8 * len(contents)), k=flips)]:
            flipped = bytearray(contents)
            flipped[place // 8] ^= 1 << place % 8
            file.write_bytes(flipped)
            with pytest.raises(StateError, match=file.name):
                _read_all(tmp_path, manifest, layout)
        file.write_bytes(contents)
        assert _read_all(tmp_path, manifest, layout).equals(whole)


def _write_some(root: Path, layouts: list[Layout], chance: random.Random) -> str:
    """A few rows of each."""
    store = StateStore.open(str(root), "all", 3, None, 8)
    hashes = np.array([1, 2**63, 2**64 - 1], np.uint64)
    for layout in layouts:
        fields = [*layout.identity[layout.by_time :], *layout.columns]
        columns = {f.name: pa.array([random_value(chance, f.type) for _ in hashes], f.type) for f in fields}
        if layout.additive:
            columns[WEIGHT] = pa.array([1] * len(hashes), pa.int64())
        if layout.by_time:
            store.timeline(layout).put(np.arange(len(hashes)), hashes, columns)
        else:
            store.table(layout).put(hashes, columns)
    manifest = store.flush()
    assert manifest is not None
    return manifest


def _read_all(root: Path, manifest: str, layout: Layout) -> pa.Table:
    store = StateStore.open(str(root), "all", 3, manifest, 9)
    return store.timeline(layout).range(0, 9) if layout.by_time else store.table(layout).everything()


@pytest.mark.parametrize("call", ["open", "fsync", "mkdir"])
def test_a_full_disk_is_said_and_the_epoch_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whatever call finds it out: each one of an epoch fails once."""
    real, errors = getattr(builtins if call == "open" else os, call), list[StateError]()
    manifest = None
    while manifest is None:
        left = len(errors)

        def fails(*args: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            left -= 1
            return real(*args, **options)

        monkeypatch.setattr(builtins if call == "open" else os, call, fails)
        try:
            manifest = write(tmp_path / str(len(errors)))
        except StateError as e:
            errors.append(e)
        finally:
            monkeypatch.undo()
    assert len(errors) >= {"open": 2, "fsync": 3, "mkdir": 2}[call]
    assert all("No space left on device" in e.message for e in errors)
    assert all("it continues after its last epoch" in e.hint for e in errors)
    assert read(tmp_path / str(len(errors)), manifest)[0].startswith("value ")


@pytest.mark.parametrize("keep", [0, 1, 50, -1])
def test_a_cut_file_is_never_mapped(tmp_path: Path, keep: int) -> None:
    manifest = write(tmp_path)
    read(tmp_path, manifest)
    run = next((tmp_path / "counts" / "3").glob("*.arrow"))
    contents = run.read_bytes()
    run.write_bytes(contents[:keep])
    said = (
        rf"{run.name}' of operator 'counts', partition 3 \(the last whole epoch is 8\) is damaged: "
        rf"it has {len(contents[:keep])} bytes, its manifest says {len(contents)}"
    )
    with pytest.raises(StateError, match=said):
        read(tmp_path, manifest)
    run.write_bytes(contents + b"!")
    with pytest.raises(StateError, match="is damaged: it has"):
        read(tmp_path, manifest)


def test_a_lost_file_is_named(tmp_path: Path) -> None:
    manifest = write(tmp_path)
    run = next((tmp_path / "counts" / "3").glob("*.arrow"))
    run.unlink()
    with pytest.raises(StateError, match=rf"Cannot read state file '.*{run.name}' of operator 'counts'"):
        read(tmp_path, manifest)
    (tmp_path / manifest).unlink()
    with pytest.raises(StateError, match=r"manifest\.json' of operator 'counts'.*\n.*Restore"):
        read(tmp_path, manifest)


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"", "is damaged"),
        (b"{}", "has no format version"),
        (b"[]", "holds a JSON list"),
        (b"null", "holds a JSON NoneType"),
        (b"\xff{}", "is damaged: 'utf-8'"),
        (b'{"version":4', "is damaged"),
        (b'{"version":true}', "has no format version"),
        (b'{"version":4}', "has no checksum"),
        (b'{"version":4,"checksum":"0000000000000000"}', "checksum does not fit"),
        (b'{"version":6,"what":{"ever":"it is"}}', "format version 6, this Tidemill reads version 5"),
        (b'{"version":1,"epoch":1,"tables":{}}', "format version 1.*\n.*An older Tidemill"),
        (b"[" * 100_000, "is damaged"),
        (encode_record(3, {}), "is damaged: KeyError"),
        (encode_record(4, {"epoch": 1, "groups": [0, 1], "tables": []}), "is damaged: AttributeError"),
        (
            encode_record(
                3, {"epoch": 1, "groups": [0, 1], "tables": {"t": {"columns": {}, "layers": [[{}]]}}}
            ),
            "TypeError",
        ),
    ],
)
def test_a_manifest_that_is_none_says_so(tmp_path: Path, contents: bytes, said: str) -> None:
    (tmp_path / "m.json").write_bytes(contents)
    with pytest.raises(StateError, match=f"m\\.json'.*{said}"):
        read_manifest(StateFiles.open(str(tmp_path)), "m.json")


def test_a_record_is_plain_json_and_bears_its_checksum() -> None:
    data = encode_record(2, {"name": "ä", "n": 1e300})
    assert decode_record(data, 2, "the record 'r'") == {"name": "ä", "n": 1e300}
    assert list(json.loads(data)) == ["version", "checksum", "name", "n"]
    for changed in (data + b" ", data.replace(b"e+300", b"E+300"), data.replace(b"00e4", b"00E4")):
        assert changed != data
        with pytest.raises(StateError, match="The record 'r' is damaged"):
            decode_record(changed, 2, "the record 'r'")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (pa.field("v", pa.int64()), "column 'v' of its table 'texts' is string, the query needs int64"),
        (
            pa.field("v", pa.string(), metadata={"tidemill.version": "2"}),
            "is string, the query needs string 2",
        ),
    ],
)
def test_a_column_that_means_something_else_is_refused(tmp_path: Path, other: pa.Field, said: str) -> None:
    manifest = write(tmp_path)
    store = StateStore.open(str(tmp_path), "counts", 3, manifest, 9)
    with pytest.raises(StateError, match=said):
        store.table(Layout(name="texts", keys=TEXTS.keys, columns=(other,)))
    with pytest.raises(StateError, match=r"column '\$time'.*is missing"):
        store.table(Layout(name="texts", keys=TEXTS.keys, columns=TEXTS.columns, ttl=5))
