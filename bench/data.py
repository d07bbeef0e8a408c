"""Makes the benchmark inputs: CSV files whose content depends only on the case's numbers and the seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

CHUNK = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """``rows`` lines of ``key,v,w``: key uniform over ``keys``, v a BIGINT below 10^6, w two decimals."""

    name: str
    rows: int
    keys: int
    seed: int = 20_231_219

    def make(self, folder: Path) -> Path:
        """The file, written once."""
        path = folder / f"{self.name}-{self.rows}-{self.keys}.csv"
        if path.exists():
            return path
        folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(self.seed)
        partial = path.with_suffix(".partial")
        with open(partial, "wb") as sink:
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
        partial.rename(path)
        return path
