"""The history of a job's sources up to a commit."""

from __future__ import annotations

from pathlib import Path

from tidemill.connectors.api import ReadLimit
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.replay.replaying import History
from tidemill.runtime.values_source import ValuesSource


def test_values_of_a_query_are_read_again_up_to_the_commit(tmp_path: Path) -> None:
    source = ValuesSource(columns=("a",), rows=(("1",), ("2",), ("3",)), schema="a INT", sequence=False)
    at = source.next_offset(None, ReadLimit(rows=2))
    commit = EpochCommit(epoch=1, time=0, offsets={"v": at}, manifests={}, tokens={})
    found = History(commit=commit, sources=Storage(str(tmp_path))).of("v", source, "VALUES")
    assert (found.next_offset(None, ReadLimit()), found.is_bounded) == (at, False)
