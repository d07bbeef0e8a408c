"""The slow twin of the group aggregate: per key a list of live rows, every result from scratch."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate import GroupAggregateSpec

Row = dict[str, Any]
Change = tuple[int, tuple[Any, ...]]


def freeze(value: Any) -> Any:
    """A value that sorts, hashes and compares: NaN equals itself, -0.0 is not 0.0, nine digits."""
    if isinstance(value, float):
        text = f"{value:.9g}"
        return text if text in ("nan", "-0") else float(text)
    if isinstance(value, list):
        return tuple(freeze(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, freeze(v)) for k, v in value.items())
    return value


def _values(call: AggregateSpec, rows: list[Row]) -> list[Any]:
    rows = [r for r in rows if call.filter is None or r[call.filter]]
    if not call.args:
        return [1] * len(rows)
    values = [tuple(r[a] for a in call.args) if len(call.args) > 1 else r[call.args[0]] for r in rows]
    keep_null = call.function in ("ARRAY_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG")
    values = [v for v in values if keep_null or v is not None]
    if call.distinct:
        values = list({freeze(v): v for v in reversed(values)}.values())[::-1]
    return values


def _wrap(total: int, bits: int) -> int:
    total &= (1 << bits) - 1
    return total - (1 << bits) if total >> (bits - 1) else total


def _sum(call: AggregateSpec, values: list[Any]) -> Any:
    if not values:
        return None
    total = sum(values)
    return _wrap(total, call.result.bit_width) if isinstance(total, int) else total


def _avg(call: AggregateSpec, values: list[Any]) -> Any:
    if not values:
        return None
    total, n = sum(values), len(values)
    if isinstance(total, int):
        return total // n if total >= 0 else -(-total // n)
    if isinstance(total, Decimal):
        return (total / n).quantize(Decimal(1).scaleb(-call.result.scale), ROUND_HALF_UP)
    return total / n


def _spread(call: AggregateSpec, values: list[Any]) -> Any:
    sample = not call.function.endswith("POP")
    n = len(values)
    if n <= int(sample):
        return None
    mean = sum(values) / n
    value = float(sum((v - mean) ** 2 for v in values)) / (n - int(sample))
    return value**0.5 if call.function.startswith("STDDEV") else value


def _numbers(values: list[Any]) -> list[Any]:
    return [v for v in values if v == v] or values


RESULTS: dict[str, Any] = {
    "COUNT": lambda c, v: len(v),
    "SUM": _sum,
    "$SUM0": lambda c, v: _sum(c, v) or 0,
    "AVG": _avg,
    "MIN": lambda c, v: min(_numbers(v), default=None),
    "MAX": lambda c, v: max(_numbers(v), default=None),
    "VAR_POP": _spread,
    "VAR_SAMP": _spread,
    "STDDEV_POP": _spread,
    "STDDEV_SAMP": _spread,
    "FIRST_VALUE": lambda c, v: v[0] if v else None,
    "LAST_VALUE": lambda c, v: v[-1] if v else None,
    "LISTAGG": lambda c, v: ",".join(v) if v else None,
    "ARRAY_AGG": lambda c, v: v or None,
}


@dataclass
class NaiveAggregate:
    """``shown`` is the table that the changelog folds to."""

    spec: GroupAggregateSpec
    live: dict[tuple[Any, ...], list[Row]] = field(default_factory=dict)

    def result(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows = self.live.get(key)
        if not rows:
            return None
        values = [RESULTS[c.function](c, _values(c, rows)) for c in self.spec.calls]
        return (*key, *(freeze(v) for v in values))

    def epoch(self, table: pa.Table) -> list[Change]:
        """Takes in the rows in the order given; the changes, key by key or row by row."""
        rows = table.to_pylist()
        if self.spec.per_record:
            return [change for row in rows for change in self._steps([row])]
        return self._steps(rows)

    def _steps(self, rows: list[Row]) -> list[Change]:
        keys = {self._key(row): None for row in rows}
        before = {key: self.result(key) for key in keys}
        for row in rows:
            self._take(row)
        return [change for key in keys for change in self._change(before[key], self.result(key))]

    def _key(self, row: Row) -> tuple[Any, ...]:
        return tuple(freeze(row[name]) for name, _ in self.spec.keys)

    def _take(self, row: Row) -> None:
        key, kind = self._key(row), row.get("$kind", 0)
        values = {k: v for k, v in row.items() if not k.startswith("$")}
        if not kind & 1:
            self.live.setdefault(key, []).append(values)
        elif key in self.live:
            frozen = [freeze(r) for r in self.live[key]]
            self.live[key].pop(frozen.index(freeze(values)))
            if not self.live[key]:
                del self.live[key]

    def _change(self, before: Any, after: Any) -> list[Change]:
        if before is None or after is None:
            return [(kind, row) for kind, row in ((3, before), (0, after)) if row is not None]
        results = after[len(self.spec.keys) :]
        if before == after and "nan" not in results:  # NaN is never the NaN it was
            return []
        return [(1, before), (2, after)] if self.spec.emit_update_before else [(2, after)]


def changes_of(spec: GroupAggregateSpec, table: pa.Table) -> list[Change]:
    """The output of a step as the twin writes it."""
    names = [*(name for name, _ in spec.keys), *(call.name for call in spec.calls)]
    return [(row.get("$kind", 0), tuple(freeze(row[name]) for name in names)) for row in table.to_pylist()]
