"""Savepoints as files: whole or absent, taken up anywhere, by jobs of their own. Without a job that runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.running import Crash
from tidemill.changelog.hashing import mix
from tidemill.errors import OwnershipError, StateError
from tidemill.files.exclusive.local import LocalExclusive
from tidemill.files.storage import TEMPORARY, Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import MARK, Savepoint, Snapshot, check_empty, remove_savepoint
from tidemill.runtime.checkpoint.savepoint_export import export_savepoint, import_savepoint
from tidemill.runtime.checkpoint.savepoint_report import differences, savepoints_in
from tidemill.runtime.state_tables.editing import claim
from tidemill.state.layout import Layout
from tidemill.state.record import encode_record
from tidemill.state.store import StateStore

OPERATOR = "agg-2"
IDENTITY = JobIdentity(
    job_id="old",
    fingerprint="f",
    nodes={"1": "Scan(a)", "2": "Sum(a)"},
    operators={OPERATOR: "x"},
    rules=4,
    facts={"the time zone": "UTC"},
)
WANTED = replace(IDENTITY, job_id="new", name="again")
TABLE = Layout(name="t", keys=(pa.field("k", pa.int64()),), columns=(pa.field("v", pa.int64()),))
RECORDED = Path(__file__).parent / "recorded" / "savepoint-3"


def state(root: Path, epoch: int = 1) -> str:
    """A manifest of a hundred rows."""
    store = StateStore.open(str(root / "state"), OPERATOR, 0, None, epoch)
    hashes = mix(np.arange(100).astype(np.uint64))
    keys = np.argsort(hashes)
    store.table(TABLE).put(hashes[keys], {"k": pa.array(keys), "v": pa.array(keys * 2)})
    name = store.flush()
    assert name is not None
    return name


def commit(manifest: str, epoch: int = 7) -> EpochCommit:
    return EpochCommit(
        epoch=epoch,
        time=5,
        offsets={"scan-1": {"byte": 7}},
        manifests={OPERATOR: {"0": [[manifest, 0, 4096]]}, "other": {}},
        tokens={"sink-3": ["t"]},
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The directory of a job that has ended after epoch 7, without a word whether it was published."""
    root = tmp_path / "job"
    with CheckpointDirectory(Storage(str(root))) as opened:
        opened.open(IDENTITY)
        opened.write_commit(commit(state(root)))
        opened.write_commit(replace(commit(state(root, 2)), epoch=6))
        opened.begin_showing()
    (root / "sources" / "scan-1").mkdir()
    (root / "sources" / "scan-1" / "taken.json").write_text("[]")
    (root / "sources" / "scan-1" / f"taken.json{TEMPORARY}1").write_text("[")
    return root


def snapshot(job: Path) -> Snapshot:
    found = CheckpointDirectory(Storage(str(job))).last_commit()
    return Snapshot(identity=IDENTITY, commit=found, checkpoint=Storage(str(job)))


@pytest.fixture
def savepoint(job: Path, tmp_path: Path) -> Path:
    target = tmp_path / "savepoint"
    snapshot(job).write(Storage(str(target)))
    return target


def start(
    savepoint: Path, place: Path, wanted: JobIdentity = WANTED, claims: bool = False, drops: bool = False
) -> EpochCommit:
    """What the job in ``place`` begins after."""
    directory = CheckpointDirectory(Storage(str(place)))
    with directory:
        origin = Origin(savepoint=Savepoint.open(Storage(str(savepoint))), claims=claims, drops=drops)
        assert origin.start(directory, wanted) == replace(wanted, former=["old"], whole=False)
        found = directory.last_commit()
    assert found is not None
    return found


def names(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_a_savepoint_has_what_the_last_epoch_names_and_no_more(savepoint: Path, job: Path) -> None:
    found = Savepoint.open(Storage(str(savepoint)))
    assert found.epoch == 7
    assert set(found.files) == set(names(savepoint)) - {MARK}
    assert not any("2.0." in name for name in names(savepoint)), "the state of epoch 6"
    assert not any(TEMPORARY in name for name in names(savepoint))
    run = next(name for name in found.files if name.endswith(".arrow"))
    assert (savepoint / run).samefile(job / run), "it is a link"


def test_a_job_begins_after_the_epoch_with_an_id_of_its_own_and_nothing_to_publish(
    savepoint: Path, job: Path, tmp_path: Path
) -> None:
    moved = savepoint.rename(tmp_path / "moved")
    shutil.rmtree(job)
    for place in ("a", "b"):
        found = start(moved, tmp_path / place)
        assert (found.epoch, found.tokens, found.offsets) == (7, {}, {"scan-1": {"byte": 7}})
        store = StateStore.open(str(tmp_path / place / "state"), OPERATOR, 0, found.slices[OPERATOR][0], 8)
        rows = store.table(TABLE).everything()
        assert sorted(rows.column("v").to_pylist()) == list(range(0, 200, 2))
        assert (tmp_path / place / "sources" / "scan-1" / "taken.json").read_text() == "[]"
    with CheckpointDirectory(Storage(str(tmp_path / "a"))) as again:
        assert again.open(replace(WANTED, job_id="another")).job_id == "new"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o600)
    path.unlink()
    path.write_bytes(bytes(data))


def shorten(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1])


@pytest.mark.parametrize("spoil", [flip, shorten, Path.unlink])
@pytest.mark.parametrize(
    "which", ["*.arrow", "*.manifest.json", "*.commit.json", "taken.json", MARK, "job.json"]
)
def test_whatever_is_damaged_is_refused_by_name_and_nothing_is_begun(
    savepoint: Path, tmp_path: Path, which: str, spoil: Callable[[Path], None]
) -> None:
    spoil(next(savepoint.rglob(which)))
    with pytest.raises(StateError, match=str(savepoint)):
        start(savepoint, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"fingerprint": "g", "nodes": {"1": "Scan(a)", "3": "Max(a)"}},
            r"Sum\(a\) where this query has Max",
        ),
        ({"facts": {"the time zone": "Asia/Tokyo"}}, "the time zone: UTC then, Asia/Tokyo now"),
    ],
)
def test_another_query_is_refused_by_the_name_of_the_savepoint(
    savepoint: Path, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    wanted = replace(WANTED, **change)
    with pytest.raises(StateError, match=f"The savepoint '{savepoint}' belongs to another query.*{said}"):
        start(savepoint, tmp_path / "new", wanted)
    assert not (tmp_path / "new").exists()
    assert start(savepoint, tmp_path / "new").epoch == 7, "the directory is as good as before"


def test_a_part_of_the_query_starts_where_state_may_be_left_out(savepoint: Path, tmp_path: Path) -> None:
    part = replace(WANTED, fingerprint="g", nodes={"1": "Scan(a)"}, operators={})
    with pytest.raises(StateError, match="which this query lacks"):
        start(savepoint, tmp_path / "new", part)
    assert start(savepoint, tmp_path / "new", part, drops=True).manifests == {}
    assert not list((tmp_path / "new" / "state").rglob("*.arrow"))
    more = replace(part, nodes={**part.nodes, "9": "Filter(a)"})
    with pytest.raises(StateError, match=r"where this query has Filter\(a\)"):
        start(savepoint, tmp_path / "other", more, drops=True)


def test_a_kill_while_a_savepoint_is_taken_up_leaves_what_the_next_start_fills(
    savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, done = tmp_path / "new", len(names(savepoint))
    taken = Storage.take_in
    for left in range(done):
        files = iter(range(left))

        def dies(self: Storage, other: Storage, relative: str, files: Iterator[int] = files) -> None:
            if next(files, None) is None:
                raise Crash
            taken(self, other, relative)

        monkeypatch.setattr(Storage, "take_in", dies)
        try:
            start(savepoint, place)
            break
        except Crash:
            directory = CheckpointDirectory(Storage(str(place)))
            with pytest.raises(StateError, match=f"was being filled from '{savepoint}'"):
                directory.open(WANTED)
    else:
        pytest.fail("it never started")
    assert left > 1
    assert [n for n in names(place / "state") if n.endswith(".arrow")]


def test_one_job_claims_a_savepoint_and_it_goes(savepoint: Path, tmp_path: Path) -> None:
    (savepoint / "claimed.json").write_bytes(_record({"directory": "/else/where"}))
    for claims in (True, False):
        with pytest.raises(StateError, match=r"was claimed by the job in '/else/where'"):
            start(savepoint, tmp_path / "new", claims=claims)
    (savepoint / "claimed.json").unlink()
    assert start(savepoint, tmp_path / "first", claims=True).epoch == 7
    assert not savepoint.exists()
    assert list((tmp_path / "first" / "state").rglob("*.arrow"))


def test_a_savepoint_on_a_disk_that_cannot_be_written_is_not_claimed(
    savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalExclusive.put

    def refuses(self: LocalExclusive, name: str, data: bytes) -> None:
        if name == "claimed.json":
            raise OSError(30, "Read-only file system")
        put(self, name, data)

    monkeypatch.setattr(LocalExclusive, "put", refuses)
    with pytest.raises(StateError, match=f"savepoint '{savepoint}' cannot be claimed: Read-only") as refused:
        start(savepoint, tmp_path / "new", claims=True)
    assert "NO_CLAIM" in refused.value.hint
    assert start(savepoint, tmp_path / "new").epoch == 7


def _record(fields: dict[str, object]) -> bytes:
    return encode_record(4, fields)


def test_the_directory_of_an_ended_job_serves_once_its_sinks_have_its_last_epoch(
    job: Path, tmp_path: Path
) -> None:
    with pytest.raises(StateError, match="has reached its sinks is not known"):
        start(job, tmp_path / "new")
    with CheckpointDirectory(Storage(str(job))) as running:
        running.open(IDENTITY)
        running.note_published(7)
        with pytest.raises(OwnershipError, match="in use by another running job"):
            start(job, tmp_path / "new")
    assert start(job, tmp_path / "new").epoch == 7


def test_a_commit_is_known_to_be_published_by_what_comes_after(tmp_path: Path) -> None:
    with CheckpointDirectory(Storage(str(tmp_path))) as directory:
        directory.open(IDENTITY)
        first, second = commit("m", 1), commit("m", 2)
        directory.write_commit(first)
        assert not directory.is_published(first)
        directory.write_plan(EpochPlan(epoch=2, time=5, start={}, end={}))
        assert directory.is_published(first)
        directory.write_commit(second)
        assert not directory.is_published(second)
        directory.forget_before(2)
        assert directory.is_published(second)


def test_a_savepoint_is_absent_where_it_could_not_be_written(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "savepoint"
    target.mkdir()
    (target / "file").touch()
    with pytest.raises(StateError, match=f"'{target}' cannot be written: the directory is not empty"):
        snapshot(job).write(Storage(str(target)))
    with pytest.raises(
        StateError, match=r"not a savepoint: it has no 'savepoint.json', so it was never finished"
    ):
        Savepoint.open(Storage(str(target)))
    with pytest.raises(StateError, match="is not a savepoint: there is nothing"):
        Savepoint.open(Storage(str(tmp_path / "none")))

    def full(self: Storage, other: Storage, relative: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Storage, "take_in", full)
    with pytest.raises(StateError, match="cannot be written: No space left on device"):
        snapshot(job).write(Storage(str(tmp_path / "second")))
    assert not (tmp_path / "second").exists()


def test_a_savepoint_goes_with_its_own_files_alone(savepoint: Path) -> None:
    (savepoint / "note.txt").touch()
    remove_savepoint(Storage(str(savepoint)))
    assert names(savepoint) == ["note.txt"]


def test_a_savepoint_of_a_newer_tidemill_is_refused_by_name(savepoint: Path) -> None:
    (savepoint / MARK).write_bytes(encode_record(5, {"new": "form"}))
    with pytest.raises(
        StateError, match=f"savepoint '{savepoint}' has format version 5, this Tidemill reads"
    ):
        Savepoint.open(Storage(str(savepoint)))


def test_what_a_savepoint_names_lies_in_it(savepoint: Path, job: Path, tmp_path: Path) -> None:
    """Files of others are not taken into a directory that its user reads."""
    (tmp_path / "secret.arrow").write_text("x")
    (manifest,) = (savepoint / "state").rglob("*.manifest.json")
    fields = json.loads(manifest.read_bytes())
    fields["tables"]["t"]["layers"][0][0]["path"] = "../../secret.arrow"
    manifest.unlink()
    manifest.write_bytes(encode_record(3, {key: fields[key] for key in ("epoch", "groups", "tables")}))
    (savepoint / MARK).write_text('{"job": "old"}')
    with pytest.raises(StateError, match=r"/secret\.arrow': it is named, but does not lie in it"):
        start(savepoint, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_export_is_parquet_and_comes_back(savepoint: Path, tmp_path: Path) -> None:
    export, back = tmp_path / "export", tmp_path / "back"
    export_savepoint(Savepoint.open(Storage(str(savepoint))), Storage(str(export)))
    (file,) = export.rglob("*.parquet")
    table = pq.read_table(file)
    assert sorted(table.column("v").to_pylist()) == list(range(0, 200, 2))
    import_savepoint(Storage(str(export)), Storage(str(back)))
    assert set(names(back)) == set(names(savepoint))
    Savepoint.open(Storage(str(back))).check_whole()
    begun = start(back, tmp_path / "new")
    store = StateStore.open(str(tmp_path / "new" / "state"), OPERATOR, 0, begun.slices[OPERATOR][0], 8)
    assert sorted(store.table(TABLE).everything().column("v").to_pylist()) == list(range(0, 200, 2))
    pq.write_table(table.slice(0, 99), file)
    with pytest.raises(StateError, match=r"is damaged: '.*\.parquet': it has"):
        import_savepoint(Storage(str(export)), Storage(str(tmp_path / "changed")))
    assert not (tmp_path / "changed").exists()
    with pytest.raises(StateError, match=r"is no export of a savepoint: it has no 'export\.json'"):
        import_savepoint(Storage(str(savepoint)), Storage(str(tmp_path / "changed")))


def test_what_two_savepoints_do_not_share_is_listed(savepoint: Path, job: Path, tmp_path: Path) -> None:
    first = Savepoint.open(Storage(str(savepoint)))
    assert differences(first, first) == []
    later = replace(commit(state(job, 8), 8), offsets={"scan-1": {"byte": 9}})
    Snapshot(identity=IDENTITY, commit=later, checkpoint=Storage(str(job))).write(
        Storage(str(tmp_path / "b"))
    )
    second = Savepoint.open(Storage(str(tmp_path / "b")))
    assert [(d.kind, d.before, d.after) for d in differences(first, second)] == [
        ("job", ", after epoch 7", ", after epoch 8"),
        ("source", '{"byte": 7}', '{"byte": 9}'),
    ]
    assert savepoints_in(Storage(str(tmp_path))) == [first, second]


def test_a_savepoint_of_format_3_is_taken_up_by_its_own_rules(tmp_path: Path) -> None:
    found = Savepoint.open(Storage(str(RECORDED)))
    assert (found.epoch, found.identity.rules, found.identity.facts) == (5, 3, {})
    directory = CheckpointDirectory(Storage(str(tmp_path / "new")))
    with directory:
        Origin(savepoint=found).start(directory, replace(found.identity, job_id="new"))
        begun = directory.last_commit()
    assert begun is not None
    assert begun.offsets == {"scan-3fb8537cca094b16": {"row": 5000, "time": 1795733868137}}
    runs = [n for n in names(tmp_path / "new") if n.endswith(".arrow")]
    assert runs == [n for n in names(RECORDED) if n.endswith(".arrow")]
    job = json.loads((tmp_path / "new" / "job.json").read_bytes())
    assert (job["version"], job["rules"], job["job_id"]) == (5, 3, "new")


@pytest.mark.parametrize("way", ["export", "import"])
def test_of_two_exports_or_imports_into_one_place_one_is_refused(
    savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Both find the directory empty; the one that is refused removes nothing of the other's."""
    export, place = Storage(str(tmp_path / "export")), Storage(str(tmp_path / "one"))
    opened = Savepoint.open(Storage(str(savepoint)))
    export_savepoint(opened, export)
    both = Barrier(2)

    def checked(target: Storage) -> None:
        check_empty(target)
        both.wait(30)

    monkeypatch.setattr("tidemill.runtime.checkpoint.savepoint.check_empty", checked)
    task = {
        "export": lambda: export_savepoint(opened, place),
        "import": lambda: import_savepoint(export, place),
    }[way]
    with ThreadPoolExecutor(2) as pool:
        errors = [done.exception() for done in [pool.submit(task) for _ in range(2)]]
    (refused,) = (error for error in errors if error is not None)
    assert isinstance(refused, StateError)
    assert "another statement writes there" in str(refused)
    monkeypatch.undo()
    if way == "export":
        place, export = Storage(str(tmp_path / "back")), place
        import_savepoint(export, place)
    Savepoint.open(place).check_whole()


def test_a_record_that_is_still_being_put_is_no_part_of_a_savepoint(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that is refused in a moment has its claim there under another name until then."""
    place = tmp_path / "one"
    claim = place / ".job.json.0123abcd.tmp"

    def checked(target: Storage) -> None:
        check_empty(target)
        place.mkdir()
        claim.write_bytes(b"{}")

    monkeypatch.setattr("tidemill.runtime.checkpoint.savepoint.check_empty", checked)
    snapshot = Snapshot(identity=IDENTITY, commit=commit(state(job, 5), 7), checkpoint=Storage(str(job)))
    snapshot.write(Storage(str(place)))
    claim.unlink()
    Savepoint.open(Storage(str(place))).check_whole()


def test_of_two_savepoints_in_one_place_one_is_refused(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the directory empty."""
    both, place = Barrier(2), Storage(str(tmp_path / "one"))

    def checked(target: Storage) -> None:
        check_empty(target)
        both.wait(30)

    monkeypatch.setattr("tidemill.runtime.checkpoint.savepoint.check_empty", checked)
    manifest = state(job, 5)
    snapshots = [
        Snapshot(identity=IDENTITY, commit=commit(manifest, epoch), checkpoint=Storage(str(job)))
        for epoch in (7, 8)
    ]
    with ThreadPoolExecutor(2) as pool:
        errors = [done.exception() for done in [pool.submit(s.write, place) for s in snapshots]]
    (number,) = (number for number, error in enumerate(errors) if error is None)
    assert "another statement writes there" in str(errors[1 - number])
    found = Savepoint.open(place)
    found.check_whole()
    assert found.epoch == (7, 8)[number]
    assert {path.name for path in (tmp_path / "one" / "epochs").iterdir()} == {f"{found.epoch}.commit.json"}


def test_an_edited_savepoint_is_not_what_its_query_gives(tmp_path: Path) -> None:
    claim(Storage(str(tmp_path / "edited")), replace(IDENTITY, query={"format": 1}))
    found = CheckpointDirectory(Storage(str(tmp_path / "edited"))).stored_identity()
    assert found is not None
    assert not found.whole
    assert found.query == {"format": 1}


@pytest.mark.parametrize(
    "other",
    [
        {"watermarks": ["ts - 9"]},
        {"query": {"options": {"table.exec.sink.not-null-enforcer": "DROP"}}},
        {"sinks": ["other"]},
    ],
)
def test_the_same_state_with_other_results_is_no_query_from_the_beginning(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    first = replace(IDENTITY, sinks=["s"], watermarks=["ts - 5"], query={"options": {"table.x": "1"}})
    for wanted, whole in ((first, True), (replace(first, query={"options": {}}), True)):
        with CheckpointDirectory(Storage(str(tmp_path))) as directory:
            assert directory.open(wanted) == replace(first, whole=whole)
    with CheckpointDirectory(Storage(str(tmp_path))) as directory:
        found = directory.open(replace(first, **other))
        directory.write_commit(replace(commit("none", 1), manifests={}, tokens={}))
    assert not found.whole
    assert found.query == other.get("query", first.query)
    with CheckpointDirectory(Storage(str(tmp_path))) as directory:
        assert not directory.open(first).whole
