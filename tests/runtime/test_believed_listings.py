"""A query takes a listing that lasts for what is there, has it looked at meanwhile, and is never wrong."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from tests.session.environments import ask, new_session
from tidemill.connectors.filesystem import listing
from tidemill.errors import TidemillError
from tidemill.files import trees
from tidemill.files.trees import Tree
from tidemill.runtime import batch_job
from tidemill.runtime.spark.batch_frames import sharing
from tidemill.runtime.spark.results import collected
from tidemill.session.environment import TableEnvironment
from tidemill.session.history.keeper import Keeper
from tidemill.session.history.records import Records

TICK = 0.03
"""Seconds after which this machine's file systems surely give a change another time."""
QUERY = "SELECT COUNT(*), SUM(n), MAX(dt) FROM days WHERE n > -5"


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_MANY", 0)
    monkeypatch.setattr(trees, "_SETTLED", int(TICK * 1e9))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What each look at a listing that was believed has found."""
    found: list[bool] = []
    holds = Tree.holds

    def noted(tree: Tree) -> bool:
        assert threading.current_thread() is not threading.main_thread()
        found.append(holds(tree))
        return found[-1]

    monkeypatch.setattr(Tree, "holds", noted)
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One for each time that a query has run."""
    found: list[None] = []

    def counted(frame: DataFrame) -> pa.Table:
        found.append(None)
        return collected(frame)

    monkeypatch.setattr(batch_job, "collected", counted)
    return found


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch", parallelism__default="2")
    made.context.history = Keeper(records=Records(str(tmp_path / "kept"), 1000))
    for day in range(1, 4):
        write(tmp_path / "days", day, 1, [day])
    ask(
        made,
        "CREATE TABLE days (n BIGINT, dt INT) PARTITIONED BY (dt) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/days', 'format' = 'parquet')",
    )
    time.sleep(2 * TICK)
    return made


def write(root: Path, day: int, number: int, values: list[int]) -> None:
    (root / f"dt={day}").mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"n": values}), root / f"dt={day}" / f"{number}.parquet")


def settled(session: TableEnvironment) -> None:
    """Its table is believed from now on."""
    for _ in range(2):
        ask(session, QUERY)


def ended(session: TableEnvironment) -> list[str]:
    assert session.context.history is not None
    return [job["status"] for job in session.context.history.records.last(100)]


def test_what_lasts_is_believed(session: TableEnvironment, looks: list[bool]) -> None:
    settled(session)
    assert looks == []
    assert ask(session, QUERY) == [(3, 6, 3)]
    assert looks == [True]
    ask(session, "SELECT COUNT(*) FROM days a JOIN days b ON a.dt = b.dt")
    assert looks == [True, True], "one look for each statement"


@pytest.mark.parametrize("mode", ["ALL_EXCHANGES_BLOCKING", "ALL_EXCHANGES_PIPELINED"])
def test_a_query_that_was_wrong_begins_again_before_it_runs(
    session: TableEnvironment, tmp_path: Path, looks: list[bool], runs: list[None], mode: str
) -> None:
    ask(session, f"SET 'execution.batch-shuffle-mode' = '{mode}'")
    settled(session)
    write(tmp_path / "days", 4, 1, [4, 40])
    runs.clear()
    assert ask(session, QUERY) == [(5, 50, 4)]
    assert looks == [False]
    assert len(runs) == 1
    assert ended(session) == ["FINISHED"] * 3, "nobody is told of what did not run"


def test_what_changes_each_time_is_looked_at_first(
    session: TableEnvironment, tmp_path: Path, looks: list[bool]
) -> None:
    settled(session)
    for day in range(4, 8):
        write(tmp_path / "days", day, 1, [day])
        assert ask(session, QUERY) == [(day, sum(range(day + 1)), day)]
        time.sleep(2 * TICK)
    assert looks == [False], "once, and not again"


def test_what_comes_back_is_read_as_it_is(
    session: TableEnvironment, tmp_path: Path, looks: list[bool]
) -> None:
    """Nothing is kept for files that were believed to be there when others were."""
    current, deployed = tmp_path / "days", tmp_path / "deployed"
    long = pa.table({"n": range(1000)})
    parquet.write_table(long, current / "dt=2" / "1.parquet", row_group_size=100, use_dictionary=False)
    for day in range(1, 4):
        write(deployed, day, 1, [7])
    time.sleep(2 * TICK)
    one = "SELECT COUNT(*), MAX(n) FROM days WHERE dt = {}"
    for _ in range(2):
        ask(session, one.format(1))
    current.rename(tmp_path / "before")
    deployed.rename(current)
    assert ask(session, one.format(2)) == [(1, 7)]
    assert looks == [False]
    current.rename(deployed)
    (tmp_path / "before").rename(current)
    for _ in range(3):
        assert ask(session, one.format(2)) == [(1000, 999)]


def test_parts_that_are_kept_wait_for_the_look(
    session: TableEnvironment, tmp_path: Path, looks: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run while the rest is still being made."""
    made: list[DataFrame] = []
    checkpoint = ClassicFrame.localCheckpoint

    def counted(frame: ClassicFrame) -> DataFrame:
        made.append(frame)
        return checkpoint(frame)

    monkeypatch.setattr(ClassicFrame, "localCheckpoint", counted)
    monkeypatch.setattr(sharing, "LARGE", 1)
    query = (
        "WITH u AS (SELECT dt, SUM(n) AS s FROM days GROUP BY dt)"
        " SELECT COUNT(*) FROM u a JOIN u b ON a.s = b.s + 0"
    )
    for _ in range(3):
        assert ask(session, query) == [(3,)]
    write(tmp_path / "days", 4, 1, [4])
    made.clear()
    assert ask(session, query) == [(4,)]
    assert looks[-1] is False
    assert len(made) == 1


def test_a_file_that_is_gone(session: TableEnvironment, tmp_path: Path, looks: list[bool]) -> None:
    settled(session)
    (tmp_path / "days" / "dt=3" / "1.parquet").unlink()
    assert ask(session, QUERY) == [(2, 3, 2)]
    assert looks == [False]


def test_a_table_that_is_gone(session: TableEnvironment, tmp_path: Path, looks: list[bool]) -> None:
    settled(session)
    shutil.rmtree(tmp_path / "days")
    with pytest.raises(TidemillError, match="days does not exist"):
        ask(session, QUERY)
    assert looks == [False]


def test_files_of_text_are_read_as_they_are(spark: SparkSession, tmp_path: Path, looks: list[bool]) -> None:
    """Our decoders open files while a query is planned: what goes wrong there may have gone for that."""
    session = new_session(execution__runtime_mode="batch", parallelism__default="2")
    session.context.history = Keeper(records=Records(str(tmp_path / "kept"), 1000))
    (tmp_path / "texts").mkdir()
    for number in range(3):
        (tmp_path / "texts" / f"{number}.json").write_text(f'{{"n": {number}, "m": {{"a": 1}}}}\n')
    ask(
        session,
        "CREATE TABLE texts (n BIGINT, m MAP<STRING, INT>) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/texts', 'format' = 'json')",
    )
    time.sleep(2 * TICK)
    query = "SELECT COUNT(*), SUM(n) FROM texts"
    for _ in range(3):
        assert ask(session, query) == [(3, 3)]
    (tmp_path / "texts" / "1.json").unlink()
    assert ask(session, query) == [(2, 2)]
    assert looks[-1] is False
    assert set(ended(session)) == {"FINISHED"}


def test_an_error_of_the_query_stays_one(session: TableEnvironment, looks: list[bool]) -> None:
    settled(session)
    query = "SELECT CAST(CONCAT('x', CAST(n AS STRING)) AS INT) FROM days"
    with pytest.raises(TidemillError, match=r"'x\d'"):
        ask(session, query)
    assert looks == [True]
    assert ended(session)[0] == "FAILED"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_whatever_becomes_of_files(
    session: TableEnvironment, tmp_path: Path, looks: list[bool], seed: int
) -> None:
    """Beside a reader that knows nothing of before."""
    random_ = random.Random(seed)
    root = tmp_path / "days"
    numbers = iter(range(100, 10_000))

    def some() -> Path | None:
        files = sorted(root.rglob("*.parquet"))
        return random_.choice(files) if files else None

    def added() -> None:
        write(root, random_.randrange(6), next(numbers), [random_.randrange(9)])

    def removed() -> None:
        found = some()
        if found is not None and len(list(root.rglob("*.parquet"))) > 1:
            found.unlink()

    def written_over() -> None:
        found = some()
        if found is not None:
            parquet.write_table(pa.table({"n": [random_.randrange(9), next(numbers)]}), found)

    def replaced() -> None:
        """By another of the same size."""
        found = some()
        if found is not None:
            values = [value + 1 for value in parquet.read_table(found)["n"].to_pylist()]
            parquet.write_table(pa.table({"n": values}), tmp_path / "other")
            (tmp_path / "other").rename(found)

    def moved() -> None:
        found = some()
        if found is not None:
            to = root / f"dt={random_.randrange(6)}"
            to.mkdir(exist_ok=True)
            found.rename(to / f"{next(numbers)}.parquet")

    def renamed() -> None:
        folders = sorted(root.iterdir())
        target = root / f"dt={next(numbers)}"
        random_.choice(folders).rename(target)

    def nothing() -> None:
        return

    changes: list[Callable[[], None]] = [added, removed, written_over, replaced, moved, renamed]
    for _ in range(50):
        random_.choice([*[nothing] * 8, *changes])()
        files = list(root.rglob("*.parquet"))
        read = [(n, f) for f in files for n in parquet.ParquetFile(f).read()["n"].to_pylist()]
        days = [int(f.parent.name.removeprefix("dt=")) for _, f in read]
        assert ask(session, QUERY) == [(len(read), sum(n for n, _ in read), max(days))]
        if random_.random() < 0.7:
            time.sleep(2 * TICK)
    assert set(looks) == {True, False}
