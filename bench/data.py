"""Makes the benchmark inputs: files whose content depends only on the case's numbers and the seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

CHUNK = 1_000_000


class Dataset(Protocol):
    """One input file: ``make`` writes it into the folder, once, and gives its path."""

    def make(self, folder: Path) -> Path: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """``rows`` CSV lines of ``k,v,w``: k uniform over ``keys``, v a BIGINT below 10^6, w two decimals."""

    name: str
    rows: int
    keys: int
    seed: int = 20_231_219

    def make(self, folder: Path) -> Path:
        path = folder / f"{self.name}-{self.rows}-{self.keys}.csv"
        return path if path.exists() else _write(path, self._lines)

    def _lines(self, sink: BinaryIO) -> None:
        generator = np.random.default_rng(self.seed)
        for first in range(0, self.rows, CHUNK):
            rows = min(CHUNK, self.rows - first)
            table = pa.table(
                {
                    "k": generator.integers(0, self.keys, rows),
                    "v": generator.integers(0, 1_000_000, rows),
                    "w": generator.integers(0, 100_000, rows) / 100,
                }
            )
            csv.write_csv(table, sink, csv.WriteOptions(include_header=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRows:
    """``rows`` CSV lines of ``ts,k,v``: times spread evenly over ``seconds`` of a day, up to ``late`` ms out
    of order; k uniform over ``keys``, v a BIGINT below 10^6."""

    name: str
    rows: int
    keys: int
    seconds: int
    late: int = 2_000
    seed: int = 20_240_501

    def make(self, folder: Path) -> Path:
        path = folder / f"{self.name}-{self.rows}-{self.keys}-{self.seconds}.csv"
        return path if path.exists() else _write(path, self._lines)

    def _lines(self, sink: BinaryIO) -> None:
        generator = np.random.default_rng(self.seed)
        start = np.datetime64("2024-05-01T00:00:00", "ms").astype(np.int64)
        for first in range(0, self.rows, CHUNK):
            rows = min(CHUNK, self.rows - first)
            even = (first + np.arange(rows)) * self.seconds * 1000 // self.rows
            times = np.maximum(even - generator.integers(0, self.late, rows), 0) + start
            table = pa.table(
                {
                    "ts": pa.array(times).cast(pa.timestamp("ms")),
                    "k": generator.integers(0, self.keys, rows),
                    "v": generator.integers(0, 1_000_000, rows),
                }
            )
            csv.write_csv(table, sink, csv.WriteOptions(include_header=False, quoting_style="none"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """``changes`` Debezium messages over ``keys`` rows ``id, a, b``; a and b are BIGINTs below ``domains``.

    Each key lives in cycles of five changes: one create, three updates, one delete. Every before
    image is the row as it was.
    """

    name: str
    changes: int
    keys: int
    domains: tuple[int, int]
    seed: int = 20_240_229

    def make(self, folder: Path) -> Path:
        path = folder / f"{self.name}-{self.changes}-{self.keys}.json"
        return path if path.exists() else _write(path, self._lines)

    def _lines(self, sink: BinaryIO) -> None:
        generator = np.random.default_rng(self.seed)
        key = generator.integers(0, self.keys, self.changes)
        a, b = (generator.integers(0, domain, self.changes) for domain in self.domains)
        order = np.argsort(key, kind="stable")
        place = np.empty(self.changes, np.int64)
        first = np.flatnonzero(np.r_[True, key[order][1:] != key[order][:-1]])
        place[order] = np.arange(self.changes) - np.repeat(first, np.diff(np.r_[first, self.changes]))
        previous = np.empty(self.changes, np.int64)
        previous[order] = np.r_[0, order[:-1]]
        step = place % 5
        for start in range(0, self.changes, CHUNK):
            part = slice(start, min(start + CHUNK, self.changes))
            before = _image(key[part], a[previous[part]], b[previous[part]])
            after = _image(key[part], a[part], b[part])
            lines = pc.binary_join_element_wise(
                '{"before":',
                pc.if_else(step[part] == 0, "null", before),
                ',"after":',
                pc.if_else(step[part] == 4, "null", after),
                ',"op":"',
                pa.array(np.array(["c", "u", "u", "u", "d"])[step[part]]),
                '"}\n',
                "",
            )
            sink.write(b"".join(line.as_buffer() for line in lines))


def _image(key: np.ndarray, a: np.ndarray, b: np.ndarray) -> pa.Array:
    """Row images as JSON text; string[rows]."""
    fields = [pa.array(x).cast(pa.string()) for x in (key, a, b)]
    return pc.binary_join_element_wise('{"id":', fields[0], ',"a":', fields[1], ',"b":', fields[2], "}", "")


def _write(path: Path, lines: Callable[[BinaryIO], None]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as sink:
        lines(sink)
    partial.rename(path)
    return path
