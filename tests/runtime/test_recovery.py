"""A job goes on after a crash between any two commit steps; an epoch that failed is taken back whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Crash, Session, crash_at
from tests.visible import lines, rows
from tidemill.errors import ConnectorError, StateError

STEPS = ("planned", "ran", "committed", "published")
ROWS = 40


def statements(folder: Path) -> tuple[str, ...]:
    return (
        "CREATE TABLE src (k INT, v BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/in', 'format'='csv')",
        "CREATE TABLE plain (k INT, v BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/plain', 'format'='csv')",
        "CREATE TABLE counts (k INT, c BIGINT, s BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/counts', 'format'='debezium-json')",
    )


INSERTS = (
    "EXECUTE STATEMENT SET BEGIN INSERT INTO plain SELECT k, v FROM src WHERE MOD(v, 2) = 0; "
    "INSERT INTO counts SELECT k, COUNT(*), SUM(v) FROM src GROUP BY k; END"
)


def options(folder: Path) -> dict[str, str]:
    return {"tidemill.epoch.max-rows": "9", "execution.checkpointing.dir": str(folder / "checkpoint")}


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("".join(f"{n % 5},{n}\n" for n in range(ROWS)))
    return tmp_path


def written(folder: Path, table: str) -> list[str]:
    """All visible lines of a table."""
    return lines(folder / table)


def counts(folder: Path) -> dict[int, tuple[int, int]]:
    """What the changelog in ``counts`` adds up to: one row a key."""
    found = rows(folder / "counts", "k", "c", "s")
    assert len({k for k, _, _ in found}) == found.total()
    return {k: (c, s) for k, c, s in found}


EXPECTED = {k: (ROWS // 5, sum(range(k, ROWS, 5))) for k in range(5)}
PLAIN = sorted(f"{n % 5},{n}" for n in range(0, ROWS, 2))


@pytest.mark.one_case
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("time", [1, 3])
def test_a_crash_loses_nothing_and_doubles_nothing(folder: Path, step: str, time: int) -> None:
    with pytest.raises(Crash):
        Session(options(folder), crash_at(step, time)).execute(*statements(folder), INSERTS)
    again = Session(options(folder))
    again.execute(*statements(folder), INSERTS)
    assert written(folder, "plain") == PLAIN
    assert counts(folder) == EXPECTED
    committed = time if step in ("committed", "published") else time - 1
    assert len(again.progress) == -(-ROWS // 9) - committed


def test_a_finished_job_has_nothing_more_to_do(folder: Path) -> None:
    Session(options(folder)).execute(*statements(folder), INSERTS)
    again = Session(options(folder))
    again.execute(*statements(folder), INSERTS)
    assert again.progress == []
    assert written(folder, "plain") == PLAIN


def test_a_malformed_row_commits_nothing_and_the_job_goes_on_when_it_is_mended(folder: Path) -> None:
    bad = folder / "in" / "b.csv"
    bad.write_text("7,70\nseven,71\n")
    with pytest.raises(ConnectorError, match=r"b\.csv:2"):
        Session(options(folder)).execute(*statements(folder), INSERTS)
    before = written(folder, "plain")
    assert "7,70" not in before
    assert set(before) <= set(PLAIN)
    bad.write_text("7,70\n")
    Session(options(folder)).execute(*statements(folder), INSERTS)
    assert written(folder, "plain") == sorted([*PLAIN, "7,70"])
    assert counts(folder) == {**EXPECTED, 7: (1, 70)}


def test_another_query_on_the_checkpoint_is_refused(folder: Path) -> None:
    Session(options(folder)).execute(*statements(folder), INSERTS)
    with pytest.raises(StateError, match="belongs to another query"):
        Session(options(folder)).execute(
            *statements(folder), "INSERT INTO counts SELECT k, COUNT(*), MAX(v) FROM src GROUP BY k"
        )


def test_a_job_that_lost_its_commits_is_refused(folder: Path) -> None:
    """From the beginning its output would be there twice."""
    Session(options(folder)).execute(*statements(folder), INSERTS)
    for record in (folder / "checkpoint" / "epochs").glob("*.commit.json"):
        record.unlink()
    with pytest.raises(StateError, match="is lost: epochs were committed"):
        Session(options(folder)).execute(*statements(folder), INSERTS)
    assert written(folder, "plain") == PLAIN


def test_damaged_state_is_named_with_its_operator_and_the_last_whole_epoch(folder: Path) -> None:
    with pytest.raises(Crash):
        Session(options(folder), crash_at("published", 3)).execute(*statements(folder), INSERTS)
    for run in (folder / "checkpoint" / "state").rglob("*.arrow"):
        contents = bytearray(run.read_bytes())
        contents[len(contents) // 2] ^= 4
        run.write_bytes(contents)
    said = r"partition \d+ \(the last whole epoch is 3\) is damaged: its checksum"
    with pytest.raises(StateError, match=rf"\.arrow' of operator '.*', {said}"):
        Session(options(folder)).execute(*statements(folder), INSERTS)


def test_state_files_do_not_pile_up(folder: Path) -> None:
    Session(options(folder)).execute(*statements(folder), INSERTS)
    state = [f for f in (folder / "checkpoint" / "state").rglob("*") if f.is_file()]
    manifests = [f for f in state if f.name.endswith(".manifest.json")]
    partitions = {f.parent for f in manifests}
    assert len(manifests) == len(partitions)
    records = sorted(f.name for f in (folder / "checkpoint" / "epochs").iterdir())
    assert records == ["5.commit.json", "5.plan.json", "5.published.json"]
