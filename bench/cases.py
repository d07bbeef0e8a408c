"""The benchmark queries: one SQL script each, the same text for both engines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench import nexmark
from bench.case import Case, Table, TableCase
from bench.data import ChangeFeed, Dataset, KeyedRows
from bench.window_cases import window_cases

_KEYED = "k BIGINT, v BIGINT, w DOUBLE"
_TIMED = _KEYED + ", pt AS PROCTIME()"
_IMAGE = "id BIGINT, a BIGINT, b BIGINT, PRIMARY KEY (id) NOT ENFORCED"


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkCase:
    """A query of Nexmark over ``rows`` events in files."""

    name: str
    title: str
    rows: int
    floor: float
    structured_streaming: Dataset | None = None

    def script(self, folder: Path, repeat: int) -> list[str]:
        *small, warm_up = _statements(nexmark.script(self.name, nexmark.export(10_000, folder)))
        *large, insert = _statements(nexmark.script(self.name, nexmark.export(self.rows, folder)))
        apart = ["CREATE DATABASE warm_up", "USE warm_up"]
        return [*apart, *small, warm_up, "USE default_database", *large, *[insert] * repeat]


def _statements(script: str) -> list[str]:
    return [text for part in script.split(";\n") if (text := part.strip().removesuffix(";"))]


def _keyed(name: str, file: str, rows: int, keys: int, *, seed: int = 1, columns: str = _KEYED) -> Table:
    return Table(
        name=name,
        columns=columns,
        data=KeyedRows(name=file, rows=rows, keys=keys, seed=seed),
        small=KeyedRows(name="warm", rows=1_000, keys=100),
    )


def _changes(name: str, changes: int, keys: int, domains: tuple[int, int]) -> Table:
    return Table(
        name=name,
        columns=_IMAGE,
        data=ChangeFeed(name=name, changes=changes, keys=keys, domains=domains),
        small=ChangeFeed(name=f"warm-{name}", changes=1_000, keys=100, domains=(100, 100)),
        format="debezium-json",
    )


def cases(rows: int) -> tuple[Case, ...]:
    """All cases; ``rows`` (20 M in the published table) is the input of an aggregation, half of it
    that of a Top-N, of windows, of Nexmark or of each side of a join, a quarter the changes of a CDC join."""
    half = rows // 2
    return (*_aggregations(rows), *_joins(rows), *_rankings(half), *window_cases(half), *_nexmark(half))


def _aggregations(rows: int) -> tuple[TableCase, ...]:
    keys = max(1, rows // 20)
    many, few = _keyed("src", "many", rows, keys), _keyed("src", "few", rows, 10)
    return (
        TableCase(
            name="many-keys",
            title=f"GROUP BY {keys:,} keys, COUNT, SUM, MAX",
            rows=rows,
            tables=(many,),
            sink="k BIGINT, c BIGINT, s BIGINT, m DOUBLE",
            query="SELECT k, COUNT(*), SUM(v), MAX(w) FROM {src} GROUP BY k",
            floor=2.2,
            structured_streaming=many.data,
        ),
        TableCase(
            name="few-keys",
            title="GROUP BY 10 keys, COUNT, SUM, MAX",
            rows=rows,
            tables=(few,),
            sink="k BIGINT, c BIGINT, s BIGINT, m DOUBLE",
            query="SELECT k, COUNT(*), SUM(v), MAX(w) FROM {src} GROUP BY k",
            floor=2.5,
            structured_streaming=few.data,
        ),
        TableCase(
            name="count-distinct",
            title=f"two-level COUNT DISTINCT over {keys:,} values",
            rows=rows,
            tables=(many,),
            sink="d BIGINT, total BIGINT",
            query=(
                "SELECT d, SUM(cnt) FROM (SELECT MOD(k, 4) AS d, MOD(k, 1024) AS b, "
                "COUNT(DISTINCT k) AS cnt FROM {src} GROUP BY MOD(k, 4), MOD(k, 1024)) GROUP BY d"
            ),
            floor=1.5,
        ),
    )


def _joins(rows: int) -> tuple[TableCase, ...]:
    side, keys = rows // 2, max(1, rows // 200)
    changes = rows // 4
    facts, dimensions = changes * 8 // 10, changes // 10
    return (
        TableCase(
            name="aggregate-join",
            title=f"aggregate JOIN aggregate, {keys:,} keys",
            rows=2 * side,
            tables=(_keyed("l", "left", side, keys, seed=2), _keyed("r", "right", side, keys, seed=3)),
            sink="k BIGINT, s BIGINT, c BIGINT, m DOUBLE",
            query=(
                "SELECT l.k, l.s, r.c, r.m FROM (SELECT k, SUM(v) AS s FROM {l} GROUP BY k) l "
                "JOIN (SELECT k, COUNT(*) AS c, MAX(w) AS m FROM {r} GROUP BY k) r ON l.k = r.k"
            ),
            floor=2.0,
        ),
        TableCase(
            name="cdc-join",
            title="CDC three-way join",
            rows=facts + 2 * dimensions,
            tables=(
                _changes("orders", facts, max(1, facts // 4), (max(1, facts // 16), max(1, facts // 16))),
                _changes("customers", dimensions, max(1, facts // 16), (1_000, 1_000)),
                _changes("products", dimensions, max(1, facts // 16), (1_000, 1_000)),
            ),
            sink="id BIGINT, ca BIGINT, cb BIGINT, pa BIGINT, pb BIGINT",
            query=(
                "SELECT o.id, c.a, c.b, p.a, p.b FROM {orders} o JOIN {customers} c ON o.a = c.id "
                "JOIN {products} p ON o.b = p.id"
            ),
            floor=2.0,
        ),
    )


def _rankings(rows: int) -> tuple[TableCase, ...]:
    groups, keys = max(1, rows // 1_000), max(1, rows // 10)
    ranked = (
        "SELECT {columns} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS rn "
        "FROM {{src}}) WHERE rn <= {n}"
    )
    return (
        TableCase(
            name="top-10",
            title=f"Top-10 in each of {groups:,} groups",
            rows=rows,
            tables=(_keyed("src", "groups", rows, groups, seed=4),),
            sink="k BIGINT, v BIGINT, w DOUBLE, rn BIGINT",
            query=ranked.format(columns="k, v, w, rn", order="v DESC", n=10),
            floor=2.0,
        ),
        TableCase(
            name="keep-last",
            title=f"deduplication, last row of {keys:,} keys",
            rows=rows,
            tables=(_keyed("src", "keys", rows, keys, seed=5, columns=_TIMED),),
            sink="k BIGINT, v BIGINT, w DOUBLE, PRIMARY KEY (k) NOT ENFORCED",
            query=ranked.format(columns="k, v, w", order="pt DESC", n=1),
            floor=2.0,
        ),
    )


_APART = {
    "q6": "Flink refuses it",
    "q10": "it writes files",
    "q12": "its answer depends on the clock",
    "q13": "it needs a file beside the events",
    "q14": "it has a function in Python",
    "q23": "its result outgrows its input",
}
"""Queries of Nexmark that are no case, and why."""


def _nexmark(events: int) -> tuple[NexmarkCase, ...]:
    return tuple(
        NexmarkCase(name=name, title=f"Nexmark {nexmark.title(name)}", rows=events, floor=2.0)
        for name in nexmark.NAMES
        if name not in _APART
    )
