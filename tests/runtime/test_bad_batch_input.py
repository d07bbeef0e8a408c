"""Tables that are not what a query takes them for: an error that names the file, or a right answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.orc import write_table as write_orc
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import TidemillError
from tidemill.runtime.spark import adaptive
from tidemill.runtime.spark.job_groups import grouped
from tidemill.session import binding, execution
from tidemill.session.environment import TableEnvironment
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Query

Make = Callable[..., TableEnvironment]
FORMATS: dict[Callable[..., None], str] = {parquet.write_table: "parquet", write_orc: "orc"}


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Make:
    """A session in batch mode with a table ``t (n BIGINT, dt DATE)`` of files by their paths."""

    def made(files: dict[str, pa.Table]) -> TableEnvironment:
        for path, rows in files.items():
            (tmp_path / "t" / path).parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(rows, tmp_path / "t" / path)
        session = new_session(parallelism__default="2", execution__runtime_mode="batch")
        ask(
            session,
            "CREATE TABLE t (n BIGINT, s STRING, dt DATE) PARTITIONED BY (dt) WITH "
            f"('connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'parquet')",
        )
        return session

    return made


def rows(*numbers: int, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"n": pa.array(numbers, kind or pa.int64()), "s": ["x"] * len(numbers)})


def test_directories_that_are_no_partitions(make: Make) -> None:
    session = make({"dt=2024-01-01/a": rows(1), "dt=soon/b": rows(2)})
    with pytest.raises(TidemillError, match=r"Partition value 'soon' of 'dt' in .*dt=soon/.* is not DATE"):
        ask(session, "SELECT n, dt FROM t")
    assert sorted(ask(session, "SELECT n FROM t")) == [(1,), (2,)]  # which needs no partition
    with pytest.raises(TidemillError, match="'soon'"):  # nobody knows whether it would be ruled out
        ask(session, "SELECT n FROM t WHERE dt = DATE '2024-01-01'")


def test_files_of_other_schemas(make: Make) -> None:
    """Other types of the same values, other orders, columns too many and too few."""
    session = make(
        {
            "dt=2024-01-01/a": rows(1),
            "dt=2024-01-01/b": rows(2, kind=pa.int16()),
            "dt=2024-01-02/c": pa.table({"more": [1.5], "s": ["y"], "n": [3]}),
            "dt=2024-01-02/d": pa.table({"s": ["z"]}),
        }
    )
    found = ask(session, "SELECT n, s, CAST(dt AS STRING) FROM t")
    assert sorted(found, key=str) == [
        (1, "x", "2024-01-01"),
        (2, "x", "2024-01-01"),
        (3, "y", "2024-01-02"),
        (None, "z", "2024-01-02"),
    ]
    assert ask(session, "SELECT SUM(n) AS n FROM t WHERE n > 1") == [(5,)]


def test_a_type_that_cannot_be_what_is_declared(make: Make) -> None:
    text = pa.table({"n": ["one"], "s": ["x"]})
    session = make({"dt=2024-01-01/a": rows(1), "dt=2024-01-02/b": text})
    with pytest.raises(TidemillError, match=r"dt=2024-01-02/b"):
        ask(session, "SELECT n FROM t")
    assert ask(session, "SELECT s FROM t WHERE dt = DATE '2024-01-02'") == [("x",)]


@pytest.mark.one_case
@pytest.mark.parametrize("write", [parquet.write_table, write_orc])
def test_what_is_no_time_and_nothing_nested(make: Make, tmp_path: Path, write: Callable[..., None]) -> None:
    session = make({})
    file = tmp_path / "odd"
    for kind, held in (
        ("TIMESTAMP(3)", pa.array([7])),
        ("TIMESTAMP_LTZ(3)", pa.array(["2024-01-01"])),
        ("ROW<a BIGINT>", pa.array([[{"a": 7}]])),
        ("ARRAY<BIGINT>", pa.array([{"a": 7}])),
        ("MAP<STRING, BIGINT>", pa.array([[7]])),
    ):
        write(pa.table({"n": held}), str(file))
        words = f"'connector' = 'filesystem', 'path' = '{file}', 'format' = '{FORMATS[write]}'"
        ask(session, "DROP TABLE IF EXISTS odd")
        ask(session, f"CREATE TABLE odd (n {kind}) WITH ({words})")
        with pytest.raises(
            TidemillError, match=rf"Column 'n' holds .*, which does not fit .* \({file}\)"
        ) as e:
            ask(session, "SELECT n FROM odd")
        assert "attribute" not in str(e.value)


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "ARRAY<BIGINT>", "ROW<a BIGINT>", "STRING", "TIME"])
def test_a_file_that_knows_no_type_for_its_nulls(make: Make, tmp_path: Path, kind: str) -> None:
    session = make({})
    parquet.write_table(pa.table({"n": pa.nulls(2)}), tmp_path / "odd")
    words = f"'connector' = 'filesystem', 'path' = '{tmp_path}/odd', 'format' = 'parquet'"
    ask(session, f"CREATE TABLE odd (n {kind}) WITH ({words})")
    assert ask(session, "SELECT n FROM odd") == [(None,), (None,)]


@pytest.mark.parametrize("write", [parquet.write_table, write_orc])
def test_texts_that_are_not_utf_8(make: Make, tmp_path: Path, write: Callable[..., None]) -> None:
    """As Java shows them."""
    session = make({})
    held = pa.array([b"ab\xe9c"], pa.binary())
    write(pa.table({"s": pa.Array.from_buffers(pa.string(), 1, held.buffers())}), str(tmp_path / "odd"))
    words = f"'connector' = 'filesystem', 'path' = '{tmp_path}/odd', 'format' = '{FORMATS[write]}'"
    ask(session, f"CREATE TABLE odd (s STRING) WITH ({words})")
    assert ask(session, "SELECT s FROM odd") == [("ab\ufffdc",)]


@pytest.mark.one_case
@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize("write", [parquet.write_table, write_orc])
def test_names_in_other_letters(make: Make, tmp_path: Path, write: Callable[..., None], mode: str) -> None:
    """A column that a file lacks is NULL; one that it has but for capitals would be a mistake."""
    session = make({})
    ask(session, f"SET 'execution.runtime-mode' = '{mode}'")
    words = f"'connector' = 'filesystem', 'path' = '{tmp_path}/odd', 'format' = '{FORMATS[write]}'"
    ask(session, f"CREATE TABLE odd (n INT, id BIGINT, `ID` BIGINT, r ROW<a INT, b INT>) WITH ({words})")
    (tmp_path / "odd").mkdir()
    inner = pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))
    write(pa.table({"n": pa.array([1], pa.int32()), "ID": [2], "r": inner}), str(tmp_path / "odd" / "a"))
    assert [(n, i, j) for n, i, j, _ in ask(session, "SELECT * FROM odd")] == [(1, None, 2)]
    write(pa.table({"N": pa.array([3], pa.int32()), "id": [4]}), str(tmp_path / "odd" / "b"))
    assert sorted(ask(session, "SELECT id FROM odd"), key=str) == [(4,), (None,)]
    with pytest.raises(TidemillError, match=rf"no column 'n', but 'N': .*\({tmp_path}/odd/b\)"):
        ask(session, "SELECT n FROM odd")
    inner = pa.array([{"a": 1, "B": 2}], pa.struct([("a", pa.int32()), ("B", pa.int32())]))
    write(pa.table({"n": pa.array([5], pa.int32()), "r": inner}), str(tmp_path / "odd" / "b"))
    with pytest.raises(TidemillError, match=rf"no column 'b', but 'B': .*\({tmp_path}/odd/b\)"):
        ask(session, "SELECT r FROM odd")


@pytest.mark.parametrize("write", [parquet.write_table, write_orc])
def test_a_file_that_is_replaced_while_it_is_read(
    make: Make, tmp_path: Path, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its footer, by which it is read, and the reading."""
    session = make({})
    file = tmp_path / "odd" / "x"
    file.parent.mkdir()
    write(rows(1), str(file))
    for name in ("odd", "copy"):
        words = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = '{FORMATS[write]}'"
        ask(session, f"CREATE TABLE {name} (n BIGINT, m BIGINT) WITH ({words})")

    def replacing(*args: Any) -> Any:
        write(pa.table({"m": [7]}), str(file))
        return grouped(*args)

    with monkeypatch.context() as patched:
        for module in ("query", "insert"):
            patched.setattr(f"tidemill.runtime.batch.{module}.grouped", replacing)
        for query in ("SELECT n, m FROM odd", "INSERT INTO copy SELECT n, m FROM odd"):
            with pytest.raises(TidemillError, match=rf"File {file} has changed while it was read"):
                ask(session, "SET 'table.dml-sync' = 'true'", query)
    assert ask(session, "SELECT n, m FROM odd") == [(None, 7)]
    assert not [p for p in (tmp_path / "copy").rglob("*") if p.is_file()]


@pytest.mark.parametrize("write", [parquet.write_table, write_orc])
def test_names_of_files(make: Make, tmp_path: Path, write: Callable[..., None]) -> None:
    session = make({})
    (tmp_path / "named").mkdir()
    names = ("a b", "p%20q", "x=y", "ü", "c#d?e", "[a]*{b,c}", "q\"u'o", "back\\s", "%zz", "n\nl", "co:lon")
    for number, name in enumerate(names):
        write(rows(1 << number), str(tmp_path / "named" / name))
    words = f"'connector' = 'filesystem', 'path' = '{tmp_path}/named', 'format' = '{FORMATS[write]}'"
    ask(session, f"CREATE TABLE named (n BIGINT, s STRING) WITH ({words})")
    assert ask(session, "SELECT SUM(n) AS n FROM named") == [((1 << len(names)) - 1,)]


def test_a_directory_that_holds_itself(make: Make, tmp_path: Path) -> None:
    """By one link or by two: its files would be read again and again. Another link is what it leads to."""
    session = make({"dt=2024-01-01/a": rows(1)})
    parquet.write_table(rows(2), tmp_path / "far")
    (tmp_path / "aside").mkdir()
    (tmp_path / "far").rename(tmp_path / "aside" / "b")
    (tmp_path / "t" / "dt=2024-01-02").symlink_to(tmp_path / "aside")
    assert ask(session, "SELECT SUM(n) AS n FROM t") == [(3,)]
    (tmp_path / "aside" / "back").symlink_to(tmp_path / "t")
    with pytest.raises(TidemillError, match="A link leads back to a directory that it lies in"):
        ask(session, "SELECT SUM(n) AS n FROM t")


def test_a_damaged_row_group_is_an_error_of_who_reads_it(make: Make, tmp_path: Path) -> None:
    session = make({"dt=2024-01-01/a": rows(1), "dt=2024-01-02/b": rows(*range(1000))})
    file = tmp_path / "t" / "dt=2024-01-02" / "b"
    data = bytearray(file.read_bytes())
    data[4:60] = bytes(56)
    file.write_bytes(data)
    with pytest.raises(TidemillError, match=rf"Cannot read file {file}"):
        ask(session, "SELECT SUM(n) AS n FROM t")
    assert ask(session, "SELECT SUM(n) AS n FROM t WHERE dt = DATE '2024-01-01'") == [(1,)]


@pytest.mark.parametrize(("values", "expected"), [(0, []), (100_000, [(1,), (2,)])])
def test_none_or_very_many_values_to_prune_by(
    make: Make, tmp_path: Path, values: int, expected: list[tuple[int]]
) -> None:
    session = make({"dt=2024-01-01/a": rows(1), "dt=2024-01-02/b": rows(2)})
    days = pa.table({"d": pa.array(range(19_000, 19_000 + values), pa.int32()).cast(pa.date32())})
    parquet.write_table(days, tmp_path / "days")
    ask(
        session,
        "CREATE TABLE days (d DATE) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/days', 'format' = 'parquet')",
    )
    assert sorted(ask(session, "SELECT n FROM t JOIN days ON dt = d WHERE d IS NOT NULL")) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a.n, b.n FROM t AS a JOIN t AS b ON a.n = b.n WHERE a.n < 2", [(0, 0), (1, 1)]),
        ("SELECT /*+ BROADCAST(b) */ a.n, b.n FROM t AS a JOIN t AS b ON a.n = b.n - 98", [(0, 98), (1, 99)]),
        ("SELECT n FROM t WHERE n IN (SELECT n + 98 FROM t)", [(99,), (98,)]),
        ("SELECT n FROM t WHERE n NOT IN (SELECT n + 1 FROM t)", [(0,)]),
        ("SELECT a.n FROM t AS a LEFT JOIN t AS b ON a.n = b.n + 99 WHERE b.n IS NOT NULL", [(99,)]),
    ],
)
def test_a_side_that_turns_out_too_large_to_be_sent(
    make: Make, query: str, expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is run again, and joins in another way."""
    session = make({"dt=2024-01-01/a": rows(*range(100))})
    monkeypatch.setitem(adaptive._EXACT, "spark.sql.maxBroadcastTableSize", "16")
    assert sorted(ask(session, query)) == sorted(expected)


def test_what_can_only_be_joined_by_sending_says_so(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make({"dt=2024-01-01/a": rows(*range(100))})
    monkeypatch.setitem(adaptive._EXACT, "spark.sql.maxBroadcastTableSize", "16")
    with pytest.raises(TidemillError, match="too large to be sent to every task"):
        ask(session, "SELECT COUNT(*) FROM t AS a LEFT JOIN t AS b ON a.n < b.n")


def test_a_file_that_goes_before_it_is_read(make: Make, tmp_path: Path) -> None:
    session = make({"dt=2024-01-01/a": rows(1), "dt=2024-01-02/b": rows(2)})
    statement = parse_statement("SELECT SUM(n) AS n FROM t")
    assert isinstance(statement, Query)
    frame = execution.frame(session.context, binding.bind(session.context, statement))
    (tmp_path / "t" / "dt=2024-01-02" / "b").unlink()
    with pytest.raises(Exception, match="dt=2024-01-02/b"):
        frame.collect()
    assert ask(session, "SELECT SUM(n) AS n FROM t") == [(1,)]


def test_a_key_that_most_rows_have_is_spread_before_it_meets(make: Make) -> None:
    """Aggregations are cut in two before their exchange, distinct values meet by key and value first."""
    session = make({"dt=2024-01-01/a": rows(*range(50))})
    for query, first in (
        ("SELECT s, COUNT(DISTINCT n) AS c, SUM(n) AS t FROM t GROUP BY s", r"hashpartitioning\(s#\d+, n#"),
        ("SELECT s, COUNT(DISTINCT n) AS c, COUNT(DISTINCT dt) AS d FROM t GROUP BY s", "gid"),
        ("SELECT s, SUM(n) AS t FROM t GROUP BY s", "partial_sum"),
    ):
        statement = parse_statement(query)
        assert isinstance(statement, Query)
        frame = execution.frame(session.context, binding.bind(session.context, statement))
        java: Any = frame._jdf
        assert re.search(first, java.queryExecution().executedPlan().toString()), query
