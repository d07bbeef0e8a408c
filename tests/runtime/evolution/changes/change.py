"""What a change of a query is: the query and its tables before and after, and why it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.runtime.evolution.changing_query import compiled_job, session
from tidemill.runtime.checkpoint.evolution import Evolution, evolution

Options = Mapping[str, str]


def files(name: str, columns: str, kind: str = "json") -> str:
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='/{name}', "
        f"'format'='{kind}', 'source.monitor-interval'='1 s')"
    )


def kafka(topic: str = "x", mode: str = "earliest-offset") -> str:
    return (
        f"CREATE TABLE kf (k INT, a BIGINT) WITH ('connector'='kafka', 'topic'='{topic}', 'format'='json', "
        f"'properties.bootstrap.servers'='h:1', 'scan.startup.mode'='{mode}')"
    )


def upserts(key: str) -> str:
    return (
        f"CREATE TABLE kf (k INT, a BIGINT, n BIGINT, PRIMARY KEY ({key}) NOT ENFORCED) WITH ("
        "'connector'='upsert-kafka', 'topic'='x', 'properties.bootstrap.servers'='h:1', "
        "'key.format'='json', 'value.format'='json')"
    )


def database(name: str, columns: str) -> str:
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='jdbc', 'url'='jdbc:sqlite:/db', "
        f"'table-name'='{name}')"
    )


TABLES = {
    "t": files(
        "t",
        "k INT, a BIGINT, b BIGINT, c STRING, f BOOLEAN, ts TIMESTAMP(3), l AS CAST(ts AS TIMESTAMP_LTZ(3)), "
        "p AS PROCTIME(), WATERMARK FOR ts AS ts",
    ),
    "r": files("r", "j INT, x BIGINT, y BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts"),
    "cdc": files("cdc", "k INT, a BIGINT, b BIGINT", "debezium-json"),
    "v": files(
        "v",
        "id INT, rate BIGINT, cost BIGINT, vt TIMESTAMP(3), wt TIMESTAMP(3), WATERMARK FOR vt AS vt, "
        "PRIMARY KEY (id) NOT ENFORCED",
        "debezium-json",
    ),
    "c": files("c", "k INT, a BIGINT, b BIGINT", "csv"),
    "d": database("d", "id INT, other INT, name STRING"),
    "u": database("u", "k INT, p BIGINT, q BIGINT, PRIMARY KEY (k) NOT ENFORCED"),
    "s": "CREATE TABLE s (k INT, p BIGINT, q BIGINT) WITH ('connector'='blackhole')",
    "kf": kafka(),
}


def altered(name: str, old: str, new: str) -> Mapping[str, str]:
    assert old in TABLES[name]
    return {name: TABLES[name].replace(old, new)}


@dataclass(frozen=True)
class Change:
    """``why``: what the reason must say. ``had`` and ``tables``: definitions that differ from ``TABLES``
    before and after, as do the options."""

    name: str
    before: str
    after: str
    why: str
    tables: Mapping[str, str] = field(default_factory=dict)
    had: Mapping[str, str] = field(default_factory=dict)
    options: Options = field(default_factory=dict)
    options_before: Options = field(default_factory=dict)
    zone: str = "UTC"

    @property
    def found(self) -> Evolution:
        then = session(*{**TABLES, **self.had}.values(), **self.options_before)
        now = session(*{**TABLES, **self.had, **self.tables}.values(), **self.options)
        stored = compiled_job(then, self.before)
        return evolution(stored, compiled_job(now, self.after, stored, self.zone))


def same(query: str) -> tuple[str, str]:
    return query, query
