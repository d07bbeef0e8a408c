"""What an epoch did, for people and metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from tidemill.runtime.checkpoint import EpochPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochProgress:
    """``rows_in``: rows the stateful operators received, after filters and local phases; ``seconds``: from
    the epoch's plan to its end; ``state_rows`` and ``state_bytes`` of the operators it touched."""

    epoch: int
    rows_in: int
    rows_out: int
    seconds: float
    state_rows: int
    state_bytes: int

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows_in / self.seconds if self.seconds > 0 else 0.0

    @classmethod
    def of(
        cls,
        plan: EpochPlan,
        report: dict[str, dict[str, Any]],
        tokens: dict[str, list[str]],
        rows: pa.Table | None,
        *,
        seconds: float,
    ) -> Self:
        written = sum(rows_of(t) for ts in tokens.values() for t in ts)
        out = rows.num_rows if rows is not None else written
        tasks = list(report.values())
        return cls(
            epoch=plan.epoch,
            rows_in=sum(t["rows_in"] for t in tasks) or out,
            rows_out=out,
            seconds=seconds,
            state_rows=sum(t.get("state_rows", 0) for t in tasks),
            state_bytes=sum(t.get("state_bytes", 0) for t in tasks),
        )


def rows_of(token: str) -> int:
    """Rows that a sink's token speaks of: its ``rows``, or the last entry of each of its ``files``; a list
    is what was written, row by row."""
    parsed = json.loads(token)
    if not isinstance(parsed, dict):
        return len(parsed)
    return int(parsed.get("rows", 0)) + sum(int(file[-1]) for file in parsed.get("files", ()))
