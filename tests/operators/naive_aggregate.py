"""The slow twin of the group aggregate: per key and call a list of values, every result from scratch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa

from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec

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


_KEEPS_NULL = ("ARRAY_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG")


@dataclass
class _Values:
    """What one call has seen of one key, in order; a retraction takes the earliest equal value."""

    call: AggregateSpec
    values: list[Any] = field(default_factory=list)
    copies: dict[Any, int] = field(default_factory=dict)

    def take(self, row: Row, weight: int) -> None:
        call = self.call
        if call.filter is not None and not row[call.filter]:
            return
        value = row[call.args[0]] if call.args else 1
        if value is None and call.function not in _KEEPS_NULL:
            return
        key = freeze(value)
        self.copies[key] = self.copies.get(key, 0) + weight
        if call.distinct and self.copies[key] != (1 if weight > 0 else 0):
            return
        if weight > 0:
            self.values.append(value)
        else:
            self.values.pop([freeze(v) for v in self.values].index(key))


@dataclass
class _Group:
    calls: list[_Values]
    rows: int = 0


def _wrap(total: int, bits: int) -> int:
    total &= (1 << bits) - 1
    return total - (1 << bits) if total >> (bits - 1) else total


def _sum(call: AggregateSpec, values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values)
    if isinstance(values[0], Decimal):
        return _decimal_sum(values, call.result.scale)
    total = sum(values)
    return _wrap(total, call.result.bit_width)


def _decimal_sum(values: list[Decimal], scale: int) -> Decimal | None:
    with localcontext(prec=80):
        total = sum(values, Decimal(0))
        return total if abs(total) < Decimal(10) ** (38 - scale) else None


def _float_sum(values: list[float]) -> float:
    """Exact, whatever the order: NaN wins, then infinities."""
    special = sum(v for v in values if not math.isfinite(v))
    return math.fsum(v for v in values if math.isfinite(v)) + special


def _avg(call: AggregateSpec, values: list[Any]) -> Any:
    if not values:
        return None
    if isinstance(values[0], float):
        return _float_sum(values) / len(values)
    total, n = sum(values), len(values)
    if isinstance(total, int):
        total = _wrap(total, 64)
        return total // n if total >= 0 else -(-total // n)
    if isinstance(total, Decimal):
        return (total / n).quantize(Decimal(1).scaleb(-call.result.scale), ROUND_HALF_UP)
    raise TypeError(type(total))


def _spread(call: AggregateSpec, values: list[Any]) -> Any:
    sample = not call.function.endswith("POP")
    n = len(values)
    if n <= int(sample):
        return None
    mean = sum(values) / n
    value = float(sum((v - mean) ** 2 for v in values)) / (n - int(sample))
    return value**0.5 if call.function.startswith("STDDEV") else value


def _place(value: Any) -> Any:
    """Where a value stands: -0.0 below 0.0, NaN above all."""
    if not isinstance(value, float):
        return value
    return (value != value, 0.0 if value != value else value, math.copysign(1.0, value) > 0)


RESULTS: dict[str, Any] = {
    "COUNT": lambda c, v: len(v),
    "SUM": _sum,
    "$SUM0": lambda c, v: _sum(c, v) or 0,
    "AVG": _avg,
    "MIN": lambda c, v: min(v, key=_place, default=None),
    "MAX": lambda c, v: max(v, key=_place, default=None),
    "VAR_POP": _spread,
    "VAR_SAMP": _spread,
    "STDDEV_POP": _spread,
    "STDDEV_SAMP": _spread,
    "FIRST_VALUE": lambda c, v: v[0] if v else None,
    "LAST_VALUE": lambda c, v: v[-1] if v else None,
    "LISTAGG": lambda c, v: ",".join(v) if v else None,
    "ARRAY_AGG": lambda c, v: list(v) or None,
}


@dataclass
class NaiveAggregate:
    spec: GroupAggregateSpec
    live: dict[tuple[Any, ...], _Group] = field(default_factory=dict)

    def result(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        group = self.live.get(key)
        if group is None:
            return None
        return (*key, *(freeze(RESULTS[c.call.function](c.call, c.values)) for c in group.calls))

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
        key, weight = self._key(row), -1 if row.get("$kind", 0) & 1 else 1
        if key not in self.live:
            if weight < 0:
                return
            self.live[key] = _Group([_Values(call) for call in self.spec.calls])
        group = self.live[key]
        group.rows += weight
        for values in group.calls:
            values.take(row, weight)
        if group.rows == 0:
            del self.live[key]

    def _change(self, before: Any, after: Any) -> list[Change]:
        if before is None or after is None:
            return [(kind, row) for kind, row in ((3, before), (0, after)) if row is not None]
        if before == after:
            return []
        return [(1, before), (2, after)] if self.spec.emit_update_before else [(2, after)]


def changes_of(spec: GroupAggregateSpec, table: pa.Table) -> list[Change]:
    """The output of a step as the twin writes it."""
    names = [*(name for name, _ in spec.keys), *(call.name for call in spec.calls)]
    return [(row.get("$kind", 0), tuple(freeze(row[name]) for name in names)) for row in table.to_pylist()]
