"""What a benchmark case is: the script that both engines run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.data import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """An input: ``name`` in the query's braces, its columns as DDL text, its format, the file and a
    small one of the same shape for the warm-up."""

    name: str
    columns: str
    data: Dataset
    small: Dataset
    format: str = "csv"

    def declare(self, name: str, path: Path) -> str:
        return (
            f"CREATE TABLE {name} ({self.columns}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{self.format}')"
        )


class Case(Protocol):
    """``rows``: of all inputs; ``floor``: the least speed-up over the best Flink;
    ``structured_streaming``: the input, where Spark can express the query (the one aggregation over k)."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def rows(self) -> int: ...
    @property
    def floor(self) -> float: ...
    @property
    def structured_streaming(self) -> Dataset | None: ...

    def script(self, folder: Path, repeat: int) -> list[str]:
        """Declarations, then the INSERT once over small files (classes, JIT) and ``repeat`` times."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """``sink``: the columns of the sink; ``query`` fills it."""

    name: str
    title: str
    rows: int
    tables: tuple[Table, ...]
    sink: str
    query: str
    floor: float
    structured_streaming: Dataset | None = None

    def script(self, folder: Path, repeat: int) -> list[str]:
        small = {t.name: f"small_{t.name}" for t in self.tables}
        large = {t.name: t.name for t in self.tables}
        insert = f"INSERT INTO snk {self.query}"
        return [
            *(t.declare(t.name, t.data.make(folder)) for t in self.tables),
            *(t.declare(small[t.name], t.small.make(folder)) for t in self.tables),
            f"CREATE TABLE snk ({self.sink}) WITH ('connector' = 'blackhole')",
            insert.format(**small),
            *[insert.format(**large)] * repeat,
        ]
