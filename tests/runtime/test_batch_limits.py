"""A LIMIT of a batch query reads the first part of a large table, and more of it only for more rows."""

from __future__ import annotations

import gzip

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import TidemillError
from tidemill.session.environment import TableEnvironment

ROWS = 30_000
TEXT = "x" * 64
"""Lines of it are more than two megabytes."""


@pytest.fixture(scope="module", params=["csv", "json", "csv.gz"])
def environment(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> TableEnvironment:
    """``good`` has two columns; ``bad`` has a record at its end that nobody can read."""
    folder, line = tmp_path_factory.mktemp("t"), '{{"v": {}, "s": "{}"}}'
    kind, _, packed = request.param.partition(".")
    line = "{},{}" if kind == "csv" else line
    lines = "".join(line.format(v, TEXT) + "\n" for v in range(ROWS))
    texts = {"good": lines, "bad": lines + line.format('"bad"', TEXT)}
    for name, text in texts.items():
        data = text.encode()
        (folder / f"{name}.{packed}").write_bytes(gzip.compress(data) if packed else data)
    made = new_session(execution__runtime_mode="batch")
    for name in texts:
        made.execute_sql(
            f"CREATE TABLE {name} (v INT, s STRING) WITH "
            f"('connector' = 'filesystem', 'path' = '{folder}/{name}.{packed}', 'format' = '{kind}')"
        )
    return made


def test_a_limit_stops_reading(environment: TableEnvironment) -> None:
    assert ask(environment, "SELECT * FROM bad LIMIT 3") == [(v, TEXT) for v in range(3)]
    query = "SELECT * FROM bad WHERE MOD(v, 1000) = 1 LIMIT 2 OFFSET 1"
    assert ask(environment, query) == [(1001, TEXT), (2001, TEXT)]
    with pytest.raises(TidemillError, match=rf"bad\.(gz)?:{ROWS + 1}\)"):
        ask(environment, "SELECT COUNT(v) FROM bad")


def test_a_limit_reads_on_for_more_rows(environment: TableEnvironment) -> None:
    last = f"SELECT * FROM good WHERE v >= {ROWS - 2}"
    assert sorted(ask(environment, f"{last} LIMIT 3")) == [(ROWS - 2, TEXT), (ROWS - 1, TEXT)]
    assert sorted(ask(environment, f"{last} LIMIT 2 OFFSET 1")) in ([(ROWS - 2, TEXT)], [(ROWS - 1, TEXT)])
    assert ask(environment, "SELECT COUNT(*) FROM (SELECT * FROM good LIMIT 3)") == [(3,)]
