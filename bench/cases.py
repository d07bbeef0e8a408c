"""The benchmark queries: one SQL script each, the same text for both engines."""

from __future__ import annotations

from dataclasses import dataclass

from bench.data import Dataset

_SOURCE = """CREATE TABLE {name} (k BIGINT, v BIGINT, w DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv');
"""
WARM_UP = Dataset(name="warm", rows=1_000, keys=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``sink`` declares snk, ``insert`` fills it; ``floor``: the least speed-up over the best
    Flink; ``structured_streaming``: Spark can express it (the one aggregation over k)."""

    name: str
    title: str
    data: Dataset
    sink: str
    insert: str
    floor: float
    structured_streaming: bool = True

    def script(self, path: str, warm_up: str, repeat: int) -> list[str]:
        """Declarations, then the INSERT once over a small file (classes, JIT) and ``repeat`` times."""
        small = self.insert.replace("FROM src", "FROM small")
        return [
            _SOURCE.format(name="src", path=path).strip(";\n"),
            _SOURCE.format(name="small", path=warm_up).strip(";\n"),
            self.sink,
            small,
            *[self.insert] * repeat,
        ]


def cases(rows: int) -> tuple[Case, ...]:
    """All cases with ``rows`` input rows (20 M in the published table)."""
    keys = max(1, rows // 20)
    return (
        Case(
            name="many-keys",
            title=f"GROUP BY {keys:,} keys, COUNT, SUM, MAX",
            data=Dataset(name="many", rows=rows, keys=keys),
            sink="CREATE TABLE snk (k BIGINT, c BIGINT, s BIGINT, m DOUBLE) WITH ('connector' = 'blackhole')",
            insert="INSERT INTO snk SELECT k, COUNT(*), SUM(v), MAX(w) FROM src GROUP BY k",
            floor=2.2,
        ),
        Case(
            name="few-keys",
            title="GROUP BY 10 keys, COUNT, SUM, MAX",
            data=Dataset(name="few", rows=rows, keys=10),
            sink="CREATE TABLE snk (k BIGINT, c BIGINT, s BIGINT, m DOUBLE) WITH ('connector' = 'blackhole')",
            insert="INSERT INTO snk SELECT k, COUNT(*), SUM(v), MAX(w) FROM src GROUP BY k",
            floor=2.5,
        ),
        Case(
            name="count-distinct",
            title=f"two-level COUNT DISTINCT over {keys:,} values",
            data=Dataset(name="many", rows=rows, keys=keys),
            sink="CREATE TABLE snk (d BIGINT, total BIGINT) WITH ('connector' = 'blackhole')",
            insert=(
                "INSERT INTO snk SELECT d, SUM(cnt) FROM (SELECT MOD(k, 4) AS d, MOD(k, 1024) AS b, "
                "COUNT(DISTINCT k) AS cnt FROM src GROUP BY MOD(k, 4), MOD(k, 1024)) GROUP BY d"
            ),
            floor=1.5,
            structured_streaming=False,
        ),
    )
