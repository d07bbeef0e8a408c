"""COUNT(DISTINCT) by windows that overlap: of slices first, then of windows.

A row is in many windows, and Spark's own way has an entry for each of its windows, grouping sets and values.
Here windows come last. Of HOP(4 s, 10 s), with slices of 2 s::

    before  SELECT window_start, window_end, a, b, $e, COUNT(DISTINCT u), SUM(v)
            FROM rows * windows * sets GROUP BY window_start, window_end, a, b, $e

    after   (1) SELECT DISTINCT slice, a, b, u FROM rows
            (2) SELECT a, b, $e, u, mid, MAX(slice before mid) last, MIN(slice from mid on) first
                FROM (1) * sets * mids GROUP BY a, b, $e, u, mid
            (3) SELECT a, b, $e, mid, last, first, COUNT(u) FROM (2) GROUP BY a, b, $e, mid, last, first
            (4) SELECT slice, a, b, SUM(v) FROM rows GROUP BY slice, a, b
            (5) SELECT window_start, window_end, a, b, $e, SUM(counts), SUM(sums)
                FROM ((3) UNION ALL (4) * sets) * windows GROUP BY window_start, window_end, a, b, $e

``mid`` is a multiple of the size. Each window of HOP holds one such time: its slices lie in the size before
``mid`` and in the size behind it. The window holds a value if it holds the value's last slice before ``mid``
or its first slice from ``mid`` on. A window of CUMULATE begins at its ``mid``, so there is nothing before.

Invariant: a row for each key and window, also where all values are NULL. Cost: entries for rows and sets
(twice for HOP), whatever the number of windows. Rows are sent by their values when equal rows have become
one, so (2) needs no exchange of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.functions.casts_datetime import EPOCH, millis_between
from tidemill.functions.values import marked
from tidemill.operators.window.assigners.assigner import floor_text
from tidemill.physical.batch.slices import Slices
from tidemill.physical.windows import window_of
from tidemill.plan.expressions import AggregateCall
from tidemill.runtime.compile.window_text import shown_windows
from tidemill.runtime.spark.batch_frames.aggregate import call_text
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased, combined
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_type

_SLICE, _SET, _MID, _LAST, _FIRST = "$slice", "$set", "$mid", "$last", "$first"
_COUNT, _WINDOWS = "$count", "$windows"
_BOUNDS = {"start": "$start", "end": "$end", "time": "$time"}
_SUM_OF = {"COUNT": "$SUM0"}
"""What makes a window's result of those of slices, where it is not the function itself."""


def aggregated_by_slices(form: Slices, below: Relation, zone: str) -> Relation:
    """The fields of the aggregation. ``below``: the rows of the last Calc, whose windows are slices."""
    rows = _Rows(form=form, zone=zone)
    ready = rows.prepared(below)
    parts = [rows.counted(ready)]
    if not all(c.distinct for c in form.node.calls):
        parts.append(rows.added_up(ready))
    return rows.by_window(combined(parts, "UNION ALL") if parts[1:] else parts[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Keys and calls have names by their numbers, columns that keys are made of by their places."""

    form: Slices
    zone: str

    def prepared(self, below: Relation) -> Relation:
        """The slice of each row, what keys are made of, and by their names the columns that calls read."""
        form, translator = self.form, Translator(columns=below.columns, zone=self.zone)
        end = quote(below.columns[form.end])
        texts = [f"({millis_between(EPOCH, end)} - {form.width}L)"]
        texts += [quote(below.columns[i]) for i in form.inputs]
        texts += [translator.sql(form.sets[0][i]) for i in form.read]
        names = (*self._in_slices, *(self._fields[i].name for i in form.read))
        return below.select(aliased(texts, names), names)

    def counted(self, rows: Relation) -> Relation:
        """How many values have which slices around which time: keys, windows, and a column per call."""
        values = tuple(f"$value{i}" for i, _ in enumerate(self._distinct.args))
        size, offset = self.form.window.size, self.form.window.offset
        mid, slice_ = quote(_MID), quote(_SLICE)
        start = floor_text(slice_, size, offset)
        mids = start if self.form.window.kind.cumulates else f"{start}, {start} + {size}L"
        rows = self._in_sets(self._sent(rows, values), [f"explode(array({mids}))"], (_MID,))
        last = f"max(IF({slice_} < {mid}, {slice_}, NULL))"
        first = f"min(IF({slice_} >= {mid}, {slice_}, NULL))"
        rows = _grouped(rows, (*self._keys, _MID, *values), [last, first], (_LAST, _FIRST))
        rows = _grouped(rows, (*self._keys, _MID, _LAST, _FIRST), [f"count({quote(values[0])})"], (_COUNT,))
        return self._results(rows, self._around(mid), [_COUNT if c.distinct else "" for c in self._calls])

    def _sent(self, rows: Relation, values: tuple[str, ...]) -> Relation:
        """Equal rows once, by their values. What is not counted is NULL, as its group must be there."""
        call = self._distinct
        args = [self._fields[a] for a in call.args]
        told = [f"{quote(f.name)} IS NOT NULL" for f in args]
        told += [] if call.filter is None else [quote(self._fields[call.filter].name)]
        texts = [f"IF({' AND '.join(told)}, {marked(quote(f.name), f.type)}, NULL)" for f in args]
        names = (*self._in_slices, *values)
        rows = rows.select([*map(quote, self._in_slices), *aliased(texts, values)], names)
        hint = f"/*+ REPARTITION({', '.join(map(quote, values))}) */"
        first, *others = map(quote, names)
        return _grouped(rows, names, [], ()).select([f"{hint} {first}", *others], names)

    def added_up(self, rows: Relation) -> Relation:
        """What the other calls give of slices, as ``counted``."""
        calls = {name: c for name, c in zip(self._columns, self._calls, strict=True) if not c.distinct}
        texts = [call_text(c, self._fields, self.zone) for c in calls.values()]
        rows = self._in_sets(_grouped(rows, self._in_slices, texts, tuple(calls)), [], ())
        results = [name if name in calls else "" for name in self._columns]
        return self._results(rows, self._windows(quote(_SLICE)), results)

    def by_window(self, rows: Relation) -> Relation:
        """The results of windows from those of their parts."""
        node, bounds = self.form.node, tuple(_BOUNDS.values())
        windows = shown_windows(window_of(self.form.window), quote(_WINDOWS), bounds)
        kept = (*self._keys, *self._columns)
        rows = rows.select([*map(quote, kept), windows], (*kept, *bounds))
        keys = iter(self._keys)
        columns = [quote(_BOUNDS[role] if role else next(keys)) for role in self.form.roles]
        fields = tuple(Field(x, c.type) for x, c in zip(self._columns, self._calls, strict=True))
        texts = [call_text(_of_parts(c, i), fields, self.zone) for i, c in enumerate(self._calls)]
        names = tuple(f.name for f in node.fields)
        return rows.select(aliased([*columns, *texts], names), names, f"GROUP BY {', '.join(columns)}")

    def _in_sets(self, rows: Relation, texts: list[str], names: tuple[str, ...]) -> Relation:
        """Rows once for each grouping set, with keys in place of what these are made of, and ``texts``. It
        keeps where rows are, as Spark's Expand does not."""
        sets = self.form.sets
        kept = tuple(x for x in rows.columns if x not in self._in_slices[1:])
        if sets[1:]:
            numbers = ", ".join(map(str, range(len(sets))))
            rows = rows.with_columns([f"explode(array({numbers})) AS {quote(_SET)}"], (_SET,))
        translator = Translator(columns=tuple(map(_input, range(self._width))), zone=self.zone)
        keys = [_by_set([translator.sql(each[k]) for each in sets]) for k in self.form.keys]
        made, columns = [*keys, *texts], (*self._keys, *names)
        return rows.select([*map(quote, kept), *aliased(made, columns)], (*kept, *columns))

    def _results(self, rows: Relation, windows: str, results: list[str]) -> Relation:
        """``results``: the column of each call, '' where there is none."""
        texts = [
            quote(name) if name else f"CAST(NULL AS {spark_type(call.type)})"
            for name, call in zip(results, self._calls, strict=True)
        ]
        names = (_WINDOWS, *self._columns)
        return rows.select(
            [*map(quote, self._keys), *aliased([windows, *texts], names)], (*self._keys, *names)
        )

    def _around(self, mid: str) -> str:
        """The windows around ``mid`` that hold the slice before or the slice behind."""
        last, first = (self._windows(quote(name)) for name in (_LAST, _FIRST))
        before, behind = f"filter({last}, w -> w.e > {mid})", f"filter({first}, w -> w.s <= {mid})"
        return f"array_union(coalesce({before}, array()), coalesce({behind}, array()))"

    def _windows(self, time: str) -> str:
        return self.form.window.kind.assigner(self.form.window).text(time)

    @property
    def _fields(self) -> tuple[Field, ...]:
        return self.form.node.input.fields

    @property
    def _width(self) -> int:
        return len((self.form.calcs[-1] if self.form.calcs else self.form.function).fields)

    @property
    def _calls(self) -> tuple[AggregateCall, ...]:
        return self.form.node.calls

    @property
    def _distinct(self) -> AggregateCall:
        return next(c for c in self._calls if c.distinct)

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(f"$key{i}" for i, _ in enumerate(self.form.keys))

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(f"$call{i}" for i, _ in enumerate(self._calls))

    @property
    def _in_slices(self) -> tuple[str, ...]:
        return (_SLICE, *map(_input, self.form.inputs))


def _input(column: int) -> str:
    return f"$in{column}"


def _by_set(texts: list[str]) -> str:
    if len(set(texts)) == 1:
        return texts[0]
    return f"CASE {quote(_SET)} {' '.join(f'WHEN {i} THEN {x}' for i, x in enumerate(texts))} END"


def _of_parts(call: AggregateCall, column: int) -> AggregateCall:
    function = _SUM_OF.get(call.function, call.function)
    return replace(call, function=function, args=(column,), distinct=False, filter=None)


def _grouped(rows: Relation, keys: tuple[str, ...], texts: list[str], names: tuple[str, ...]) -> Relation:
    columns = [*map(quote, keys)]
    group = f"GROUP BY {', '.join(columns)}"
    return rows.select([*columns, *aliased(texts, names)], (*keys, *names), group)
