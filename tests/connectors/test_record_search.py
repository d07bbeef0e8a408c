"""Tasks that begin in the middle of quoted text find the records' starts that a reader of all of it finds."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.connectors.sources import rows, rows_in_epochs, source, table
from tests.connectors.test_cutting import ODD, PLAIN, naive_ends
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.filesystem import record_search
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.filesystem.record_search import Piece, RecordSearch, Searcher, Stretch, record_starts
from tidemill.connectors.filesystem.source import FileSource
from tidemill.files.storage import Storage
from tidemill.types import logical as t

QUOTED_CSV = ['"one,""two"",\n3,""x"","', '"a\n""b"",c\n1,""d"""', '1,"2"']
"""Fields that are CSV themselves: they make sense from inside of quotes, too."""


def looked_at(searcher: Searcher, stretches: list[Stretch]) -> list[Piece]:
    return [piece for stretch in stretches for piece in searcher.pieces(stretch)]


@pytest.mark.parametrize(
    ("pieces", "escape"),
    [
        (PLAIN, ""),
        (ODD, ""),
        (QUOTED_CSV, ""),
        ([*ODD, '11,\\"z', '12,"a\\"\nb"'], "\\"),
        (['"""', '""', '"'], ""),
    ],
)
def test_random_texts_in_random_pieces(pieces: list[str], escape: str, tmp_path: Path) -> None:
    draw = random.Random(12)
    storage, cutter = Storage(str(tmp_path)), Cutter(quote='"', delimiter=",", escape=escape)
    found = 0
    for number in range(150):
        data = "\n".join(draw.choice(pieces) for _ in range(draw.randrange(1, 40))).encode() + b"\n"
        (tmp_path / "a").write_bytes(data)
        ends = naive_ends(data, '"', escape)
        searcher = Searcher(storage=storage, cutter=cutter, piece=draw.choice([1, 2, 3, 7, 20]))
        start = draw.choice([0, *ends[:-1]])
        stop = draw.randrange(start + 1, len(data) + 1)
        whole = Stretch(path="a", start=start, end=stop, size=len(data))
        (starts,) = record_starts([whole], partial(looked_at, searcher), draw.randrange(1, 50))
        assert starts == sorted(set(starts)), number
        assert set(starts) <= {e for e in ends if e > start}, (data, number)
        if searcher.piece == 1:
            # A piece has one byte, and the quotes behind it: nothing is left out.
            last = min(cutter.border(pa.BufferReader(data), stop, len(data)), len(data) - 1)
            there = [e for e in ends if start < e <= last]
            assert [s for s in starts if s < len(data)] == there, (data, number)
        found += len(starts)
    assert found > 150


def test_a_byte_order_mark_opens_no_field(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf"a\nb",1\n"c\nd",2\n'
    (tmp_path / "a").write_bytes(data)
    searcher = Searcher(storage=Storage(str(tmp_path)), cutter=Cutter(quote='"'), piece=4)
    stretch = Stretch(path="a", start=0, end=len(data), size=len(data))
    (starts,) = record_starts([stretch], partial(looked_at, searcher), 8)
    assert starts == [11, len(data)]


def test_the_second_look_is_at_what_was_unclear_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1,2\n" * 10 + b'8,5" disk\n' * 10 + b"1,2\n" * 10)
    searcher = Searcher(storage=Storage(str(tmp_path)), cutter=Cutter(quote='"'), piece=20)
    looks: list[list[Stretch]] = []

    def look(stretches: list[Stretch]) -> list[Piece]:
        looks.append(stretches)
        return looked_at(searcher, stretches)

    (starts,) = record_starts([Stretch(path="a", start=0, end=180, size=180)], look, 40)
    assert set(starts) <= {*range(4, 44, 4), *range(50, 150, 10), *range(144, 184, 4)}
    assert len(looks[0]) == 5
    assert all(stretch.may_walk for more in looks[1:] for stretch in more)


def test_text_without_quotes_is_not_worth_a_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_search, "_WORTH_LOCAL", 100)
    (tmp_path / "a").write_bytes(b"12345\n" * 100 + b'"1\n"\n' * 10)
    monkeypatch.setattr(RecordSearch, "_look", None)
    search = RecordSearch(storage=Storage(str(tmp_path)), cutter=Cutter(quote='"'), spark=spark, piece=64)
    search.look_through([Stretch(path="a", start=0, end=598, size=650)])
    assert search.cuts("a", 0, 598, 100) == [132, 258, 384, 516, 598]
    assert search.last_start("a", 0, 598) == 576
    search.look_through([Stretch(path="a", start=0, end=620, size=650)])
    assert search.cuts("a", 0, 620, 100) is None


def test_a_source_cuts_where_tasks_found_starts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver reads less than two pieces for a cut, however long the range is."""
    monkeypatch.setattr(record_search, "_WORTH_LOCAL", 1000)
    monkeypatch.setattr("tidemill.connectors.filesystem.source._TASK_BYTES", 3000)
    lines = [f'{n},"a, ""b""\n{n}"\n' for n in range(2000)]
    (tmp_path / "a.csv").write_text("".join(lines))
    declared = table(
        {"n": t.IntType(), "s": t.VarCharType()},
        {"connector": "filesystem", "format": "csv", "path": str(tmp_path)},
    )
    expected = [(n, f'a, "b"\n{n}') for n in range(2000)]

    def made() -> FileSource:
        found = source(declared)
        assert isinstance(found, FileSource)
        assert found.search is not None
        found.search.piece = 512
        found.search_with(spark)
        return found

    assert sorted(rows(spark, made())) == expected
    assert len(made().tasks(None, made().next_offset(None, ReadLimit()))) > 1
    read: list[int] = []
    whole = Cutter.cut

    def cut(self: Cutter, file: pa.NativeFile, start: int, size: int, **given: int | None) -> tuple[int, int]:
        end, count = whole(self, file, start, size, rows=given["rows"], length=given["length"])
        read.append(end - start)
        return end, count

    monkeypatch.setattr(Cutter, "cut", cut)
    epochs = rows_in_epochs(spark, made(), ReadLimit(bytes=10_000))
    assert len(epochs) == 4
    assert sorted(row for epoch in epochs for row in epoch) == expected
    assert read
    assert max(read) < 1100
