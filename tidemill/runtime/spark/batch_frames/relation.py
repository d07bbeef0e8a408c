"""Parts of a batch query as Spark SQL text, which Spark reads and analyses as a whole.

A step of a DataFrame is analysed when it is made, and asks the JVM some dozen times: for a query of a second
that was a third of its cost. Here a step is text around the text below it. Frames (tables, what Python
computes) come in as views of the job's own session.

Invariant: a relation gives ``columns``, in order, and nothing else (but where there are none: Spark SQL has
no such SELECT). Cost: an analysis for every ``_DEEPEST`` queries that stand within each other, since Spark's
parser looks at a text again for each parenthesis around it, and one for what has several readers, whose text
would be doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from pyspark.sql import DataFrame, SparkSession

from tidemill.types.physical import quote

_DEEPEST = 12
_TOGETHER = 8
NO_COLUMN = "0 AS `$nothing`"


@dataclass(frozen=True, slots=True)
class Relation:
    """``item``: what stands behind FROM, a query in parentheses or a view, which has its frame (``made``).
    ``depth``: queries within each other. ``source``: a view that has these columns and others, for who names
    columns and has no other relation beside it; '' where there is none."""

    views: Views
    item: str
    columns: tuple[str, ...]
    depth: int = 0
    made: DataFrame | None = None
    source: str = ""

    def frame(self) -> DataFrame:
        if self.made is not None:
            return self.made
        rows = self.views.spark.sql(self.item.removeprefix("(").removesuffix(")"))
        return rows if self.columns else rows.select()

    def view(self) -> Relation:
        """The same, analysed once for all of its readers."""
        return self if self.made is not None else self.views.of(self.frame(), self.columns)

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


@dataclass(frozen=True, slots=True)
class Views:
    """Frames by name, in the session of one job."""

    spark: SparkSession
    _numbers: Iterator[int] = field(default_factory=count)

    def of(self, frame: DataFrame, columns: tuple[str, ...]) -> Relation:
        """``columns``: the frame's own names. A user's frame is of another session."""
        item = quote(f"$rows{next(self._numbers)}")
        if frame.sparkSession is not self.spark:
            frame = self._adopted(frame)
        frame.createTempView(item)
        return Relation(self, item, columns, made=frame)

    def named(self, name: str, texts: Sequence[str], columns: tuple[str, ...]) -> Relation:
        """``columns`` of ``texts`` over a view that the session has already."""
        made = Relation(self, quote(name), ()).select(aliased(texts, columns), columns)
        return replace(made, source=quote(name)) if list(texts) == [*map(quote, columns)] else made

    def _adopted(self, frame: DataFrame) -> DataFrame:
        dataset = getattr(self.spark._jvm, "org.apache.spark.sql.classic.Dataset")
        rows = dataset.ofRows(self.spark._jsparkSession, frame._jdf.logicalPlan())
        return DataFrame(rows, self.spark)


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
    """The rows of ``parts``, by position and in their order, a few of them together: Spark recurses from one
    to the next, and looks at all of a union's inputs with each that is added."""
    made = [part.renamed(columns) for part in parts]
    while len(made) > 1:
        groups = (made[i : i + _TOGETHER] for i in range(0, len(made), _TOGETHER))
        made = [combined(group, "UNION ALL") if group[1:] else group[0] for group in groups]
    return made[0]
