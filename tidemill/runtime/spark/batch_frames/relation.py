"""Parts of a batch query as Spark SQL text, which Spark parses and analyses as a whole.

A step of a DataFrame is analysed when it is made, and calls the JVM some dozen times: a third of the cost
of a query of one second. Here a step is text around the text below it. Frames (tables, and rows that Python
computes) are views of the job's own session. The meaning of a text depends only on the text, the session's
settings, and views whose names no other rows have. So Spark's plan of a query is kept for the next query with
the same text.

Invariant: a relation gives ``columns``, in order, and nothing else (but where there are none: Spark SQL has
no such SELECT). Cost: an analysis for every ``_DEEPEST`` queries that stand within each other, since Spark's
parser looks at a text again for each parenthesis around it, and one for what has several readers, whose text
would be doubled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import NamedTable
from tidemill.last_used import LastUsed
from tidemill.runtime.spark.applications import application_id
from tidemill.spark_internals.frames import analysed_plan, frame_in, of_analysed, of_unknown_size
from tidemill.spark_internals.versions import KNOWN_PLANS, is_on
from tidemill.types.physical import quote

_DEEPEST = 12
_TOGETHER = 8
NO_COLUMN = "0 AS `$nothing`"


@dataclass(frozen=True, slots=True)
class Relation:
    """``item``: the text behind FROM: a query in parentheses or the name of a view (``is_view``), which may
    have its frame (``made``). ``depth``: the number of nested queries. ``source``: a view that has these
    columns and others, for readers that name columns and read no other relation; '' if there is none."""

    views: Views
    item: str
    columns: tuple[str, ...]
    depth: int = 0
    made: DataFrame | None = None
    is_view: bool = False
    source: str = ""

    @property
    def query(self) -> str:
        return f"SELECT * FROM {self.item}" if self.is_view else self.item.removeprefix("(").removesuffix(")")

    def frame(self) -> DataFrame:
        return self._given(self.views.analysed(self.query) if self.made is None else self.made)

    def known_frame(self) -> DataFrame:
        """``frame``, which Spark need not analyse where it knows the text."""
        return self._given(self.views.analysed_before(self.query) if self.made is None else self.made)

    def _given(self, rows: DataFrame) -> DataFrame:
        return rows if self.columns else rows.select()

    def view(self) -> Relation:
        """The same, analysed once for all of its readers."""
        return self if self.is_view else self.views.part(self.query, self.columns)

    def shallow(self) -> Relation:
        """The same, as text that may stand in another."""
        return self.view() if self.depth >= _DEEPEST else self

    def around(self, text: str, columns: tuple[str, ...]) -> Relation:
        """The query ``text`` that reads this relation's item, and of others none that is deeper."""
        return Relation(self.views, f"({text})", columns, self.depth + 1)

    def select(self, texts: Sequence[str], columns: tuple[str, ...], rest: str = "") -> Relation:
        """``columns`` of ``texts`` over the relation's; ``rest``: what follows FROM."""
        below = self.shallow()
        read = f"SELECT {', '.join(texts) or NO_COLUMN} FROM {below.source or below.item} {rest}"
        return replace(below, depth=0).around(read, columns) if below.source else below.around(read, columns)

    def with_columns(self, texts: Sequence[str], columns: tuple[str, ...]) -> Relation:
        """``columns`` of ``texts``, behind those that are there."""
        return self.select([*map(quote, self.columns), *texts], (*self.columns, *columns))

    def renamed(self, columns: tuple[str, ...], rest: str = "") -> Relation:
        """By position; ``rest`` is over the new names."""
        if columns == self.columns and not rest:
            return self
        below = self.shallow()
        names = ", ".join(map(quote, columns)) or NO_COLUMN
        return below.around(f"SELECT {names} FROM {below.named('`$t`', columns)} {rest}", columns)

    def named(self, alias: str, columns: tuple[str, ...]) -> str:
        """What stands behind FROM where the columns have other names. ``alias`` must be no column's name: a
        field of a column is written as a column of a table is."""
        if columns in ((), self.columns):
            return f"{self.item} AS {alias}"
        return f"{self.item} AS {alias}({', '.join(map(quote, columns))})"


@dataclass(slots=True, kw_only=True)
class Views:
    """The names of the parts of one job's query in its session. ``settings``: the session's settings.
    ``has_frames``: not all inputs are tables by name. ``has_views``: a part is registered under a name."""

    spark: SparkSession
    settings: Mapping[str, str]
    _numbers: Iterator[int] = field(default_factory=count)
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _parts: set[str] = field(default_factory=set)
    _files: int = 0
    has_frames: bool = False
    has_views: bool = False

    def of(self, frame: DataFrame, columns: tuple[str, ...]) -> Relation:
        """``columns``: the frame's own names. A user's frame is of another session."""
        self.has_frames = self.has_views = True
        item = quote(f"$rows{next(self._numbers)}")
        if frame.sparkSession is not self.spark:
            frame = frame_in(self.spark, frame)
        frame.createTempView(item)
        return Relation(self, item, columns, made=frame, is_view=True)

    def part(self, query: str, columns: tuple[str, ...]) -> Relation:
        """``query`` as a view that Spark analyses when it is read."""
        name = quote(f"$part{hashlib.sha256(query.encode()).hexdigest()}")
        if name not in self._parts:
            self._parts.add(name)
            self._waiting.append(lambda: self.spark.sql(query).createOrReplaceTempView(name))
        return Relation(self, name, columns, is_view=True)

    def named(self, table: NamedTable, columns: tuple[str, ...]) -> Relation:
        """A table as ``columns``."""
        self._waiting.append(table.bring)
        self._files += table.files
        item, texts = quote(table.name), aliased(table.texts, columns)
        made = Relation(self, item, (), is_view=True).select(texts, columns)
        return replace(made, source=item) if texts == [*map(quote, columns)] else made

    def analysed(self, query: str) -> DataFrame:
        while self._waiting:
            self.has_views = True
            self._waiting[0]()
            self._waiting.pop(0)
        return self.spark.sql(query)

    def analysed_before(self, query: str) -> DataFrame:
        """``analysed``, by what Spark made of the same text before: where all it reads are tables by name."""
        if self.has_frames or not is_on(KNOWN_PLANS):
            return self.analysed(query)
        key = application_id(self.spark.sparkContext), frozenset(self.settings.items()), query
        known = _ANALYSED.get(key)
        if known is not None:
            self._waiting.clear()
            return of_analysed(self.spark, known.plan)
        made = self.analysed(query)
        _ANALYSED.keep(key, _Analysed(analysed_plan(made), self._files + len(query)))
        return made


@dataclass(frozen=True, slots=True)
class _Analysed:
    """``plan``: Spark's, which holds some hundred bytes for each file and for each letter of the query."""

    plan: Any
    weight: int


_ANALYSED = LastUsed[_Analysed](most=100, heaviest=200_000, weight=lambda known: known.weight)
"""By application, settings and text."""


def aliased(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """``texts`` under ``names``, as SELECT lists them."""
    pairs = zip(texts, map(quote, names), strict=True)
    return [text if text == name else f"{text} AS {name}" for text, name in pairs]


def combined(parts: Sequence[Relation], operator: str) -> Relation:
    """What ``operator`` (as UNION ALL) makes of relations, a few, of the same columns."""
    shallow = [part.shallow() for part in parts]
    columns = parts[0].columns
    listed = ", ".join(map(quote, columns)) or NO_COLUMN
    text = f" {operator} ".join(f"SELECT {listed} FROM {part.item}" for part in shallow)
    return max(shallow, key=lambda part: part.depth).around(text, columns)


def united(parts: Sequence[Relation], columns: tuple[str, ...]) -> Relation:
    """The rows of ``parts``, by position and in order. A few parts are put together at a time: Spark recurses
    from one part to the next, and looks at all inputs of a union for each input that is added."""
    made = [part.renamed(columns) for part in parts]
    while len(made) > 1:
        groups = (made[i : i + _TOGETHER] for i in range(0, len(made), _TOGETHER))
        made = [combined(group, "UNION ALL") if group[1:] else group[0] for group in groups]
    return made[0]


def materialized(frame: DataFrame) -> DataFrame:
    """The rows of ``frame``, computed now, as the beginning of a new plan.

    A checkpoint still has the old plan's guess of its size. Guesses are multiplied join by join, and those of
    joins upon joins grow to numbers that take longer than the query: here nobody guesses.
    """
    return of_unknown_size(frame.localCheckpoint())
