"""Bound aggregate functions: they advance a column of accumulators by an epoch's rows.

Accumulators are a carrier array with one value per group, NULL for a group without an accumulator (a
function's accumulator is never NULL). Rows come in group order, within a group by arrival. Row by row, the
function processes the rows of a group in sequence, as in Flink. Over arrays, all added rows give one
accumulator per group, all retracted rows another, and both are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.types.logical import LogicalType, RowType
from tidemill.user_functions.failures import user_code
from tidemill.user_functions.kinds import Retracting
from tidemill.user_functions.results import from_array, from_values
from tidemill.user_functions.values import presented, to_python


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAggregate:
    """``body`` has the methods of ``AggregateFunction``; ``version`` as it was declared."""

    name: str
    body: Any = field(repr=False, hash=False)
    vectorized: bool
    arg_types: tuple[LogicalType, ...]
    accumulator: LogicalType
    result: LogicalType
    version: str = ""

    @property
    def retracts(self) -> bool:
        """Whether it can retract rows."""
        return isinstance(self.body, Retracting)

    def advanced(self, old: pa.Array, columns: list[pa.Array], owners: Any, weights: Any) -> pa.Array:
        """The accumulators after the rows. ``owners``: each row's group, ascending; ``weights``: +1 adds,
        -1 takes back, 0 does not count; None: all add."""
        if weights is not None and not weights.all():
            counted = np.flatnonzero(weights)
            picks = pa.array(counted)
            columns = [c.take(picks) for c in columns]
            owners, weights = owners[counted], weights[counted]
        if self.vectorized:
            return self._advanced_arrays(old, columns, owners, weights)
        return self._advanced_rows(old, columns, owners, weights)

    def results(self, accumulators: pa.Array) -> pa.Array:
        """The value of each group; NULL if there is no accumulator."""
        there = np.flatnonzero(accumulators.is_valid().to_numpy(zero_copy_only=False))
        if len(there) < len(accumulators):
            picks = np.full(len(accumulators), -1)
            picks[there] = np.arange(len(there))
            values = self._values(accumulators.take(pa.array(there)))
            return values.take(pa.array(picks, mask=picks < 0))
        return self._values(accumulators)

    def _values(self, accumulators: pa.Array) -> pa.Array:
        if self.vectorized:
            with user_code(self.name):
                returned = self.body.get_value(presented(accumulators, self.accumulator))
            return from_array(self.name, returned, self.result, len(accumulators))
        with user_code(self.name):
            values = [self.body.get_value(a) for a in self._unpacked(accumulators)]
        return from_values(self.name, values, self.result)

    def _advanced_rows(self, old: pa.Array, columns: list[pa.Array], owners: Any, weights: Any) -> pa.Array:
        values = [to_python(c, k) for c, k in zip(columns, self.arg_types, strict=True)]
        rows = zip(*values, strict=True) if values else repeat((), len(owners))
        adds = [True] * len(owners) if weights is None else (weights > 0).tolist()
        take_in, take_back = self.body.accumulate, self.body.retract if self.retracts else None
        with user_code(self.name):
            states = self._unpacked(old)
            for owner, add, row in zip(owners.tolist(), adds, rows, strict=True):
                step = take_in if add else take_back
                assert step is not None, "planned without rows that are taken back"
                changed = step(states[owner], *row)
                if changed is not None:
                    states[owner] = changed
        return self._packed(states)

    def _packed(self, accumulators: list[Any]) -> pa.Array:
        return from_values(
            f"{self.name} (its accumulator)", accumulators, self.accumulator.with_nullable(False)
        )

    def _unpacked(self, accumulators: pa.Array) -> list[Any]:
        """Accumulators as Python values that may be changed in place."""
        values = to_python(accumulators, self.accumulator)
        row = isinstance(self.accumulator, RowType)
        fresh = self.body.create_accumulator
        return [fresh() if a is None else list(a.values()) if row else a for a in values]

    def _advanced_arrays(self, old: pa.Array, columns: list[pa.Array], owners: Any, weights: Any) -> pa.Array:
        states = self._whole(old)
        for sign, method in ((1, "accumulate"), (-1, "retract")):
            chosen = None if weights is None else np.flatnonzero(weights == sign)
            if sign < 0 and (chosen is None or not len(chosen)):
                continue
            of = owners if chosen is None else owners[chosen]
            parts = columns if chosen is None else [c.take(pa.array(chosen)) for c in columns]
            if len(of):
                states = self._merged(states, of, parts, method)
        return states

    def _merged(self, old: pa.Array, owners: Any, columns: list[pa.Array], method: str) -> pa.Array:
        """``old`` merged with the accumulators that ``method`` makes of the rows."""
        touched, groups = np.unique(owners, return_inverse=True)
        arguments = [presented(c, k) for c, k in zip(columns, self.arg_types, strict=True)]
        with user_code(self.name):
            returned = getattr(self.body, method)(pa.array(groups, pa.int64()), *arguments)
        not_null = self.accumulator.with_nullable(False)
        delta = from_array(f"{self.name}.{method}", returned, not_null, len(touched))
        before = presented(old.take(pa.array(touched)), self.accumulator)
        with user_code(self.name):
            returned = self.body.merge(before, presented(delta, self.accumulator))
        merged = from_array(f"{self.name}.merge", returned, not_null, len(touched))
        picks = np.arange(len(old))
        picks[touched] = len(old) + np.arange(len(touched))
        return pa.concat_arrays([old, merged]).take(pa.array(picks))

    def _whole(self, accumulators: pa.Array) -> pa.Array:
        """``accumulators`` with new accumulators for groups without one."""
        if not accumulators.null_count:
            return accumulators
        with user_code(self.name):
            fresh = self.body.create_accumulator()
        one = self._packed([fresh])
        missing = accumulators.is_null().to_numpy(zero_copy_only=False)
        picks = np.where(missing, len(accumulators), np.arange(len(accumulators)))
        return pa.concat_arrays([accumulators, one]).take(pa.array(picks))
