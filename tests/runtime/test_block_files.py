"""Large blocks lie in files, small ones go with the rows; both are read as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.runtime.running import Session, folded
from tidemill.runtime import epoch_loop
from tidemill.runtime.spark.block_files import LARGE, BlockReader, BlockWriter, block_folder

SMALL_TABLE = pa.table({"x": [1, None], "s": ["ä", ""]})
LARGE_TABLE = pa.table({"x": np.arange(LARGE // 8), "s": [f"text {n % 7}" for n in range(LARGE // 8)]})
ROWS = 20_000


def test_blocks_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with blanks"
    # Of a sliced table only the slice is written.
    tables = [SMALL_TABLE, LARGE_TABLE, SMALL_TABLE.slice(1), LARGE_TABLE.slice(3), LARGE_TABLE.slice(0, 5)]
    with BlockWriter(str(folder)) as writer:
        carried = [writer.written(table) for table in tables]
    assert [data.size < 300 for data in carried] == [False, True, False, True, False]
    reader = BlockReader()
    assert [reader.table(data) for data in carried] == tables
    (file,) = folder.iterdir()
    assert file.stat().st_size < 3 * LARGE_TABLE.nbytes
    # What has been read stays readable.
    (one,) = [reader.table(data) for data in carried[1:2]]
    file.unlink()
    assert one == LARGE_TABLE


def test_without_a_folder_all_goes_with_the_rows() -> None:
    with BlockWriter() as writer:
        carried = writer.written(LARGE_TABLE)
    assert carried.size > LARGE_TABLE.nbytes
    assert BlockReader().table(carried) == LARGE_TABLE


def test_files_go_with_their_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join and an aggregation of one reading, whose blocks several readers share."""
    seen: list[tuple[Path, int]] = []

    @contextmanager
    def watched(context: SparkContext) -> Iterator[str | None]:
        with block_folder(context) as folder:
            assert folder is not None
            yield folder
            seen.append((Path(folder), sum(f.stat().st_size for f in Path(folder).iterdir())))

    monkeypatch.setattr(epoch_loop, "block_folder", watched)
    (tmp_path / "a.csv").write_text("".join(f"{n},{n % 97}\n" for n in range(ROWS)))
    session = Session({"tidemill.epoch.max-rows": str(ROWS // 2)})
    session.execute(
        "CREATE TABLE a (k BIGINT, v BIGINT) WITH "
        f"('connector'='filesystem', 'path'='{tmp_path}/a.csv', 'format'='csv')"
    )
    counts = "(SELECT v, COUNT(*) AS n FROM a GROUP BY v)"
    answer = folded(session.changes(f"SELECT a.k, c.n FROM a JOIN {counts} AS c ON a.v = c.v"))
    numbers = [sum(n % 97 == v for n in range(ROWS)) for v in range(97)]
    assert answer == dict.fromkeys(((n, numbers[n % 97]) for n in range(ROWS)), 1)
    assert [size > ROWS // 2 * 16 for _, size in seen] == [True, True]
    assert len({folder for folder, _ in seen}) == 2
    assert not any(folder.exists() for folder, _ in seen)
