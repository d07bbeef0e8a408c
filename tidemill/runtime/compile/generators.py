"""Expand and UNNEST as Spark generator texts; used by both modes."""

from __future__ import annotations

from tidemill.errors import InternalError
from tidemill.plan.expressions import Expr
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import ArrayType, Field, MapType, MultisetType, RowType
from tidemill.types.physical import quote

ROWS_COLUMN = "$rows"
"""What a user's table function gives for a row, before it becomes rows."""
_ROW = "_row"
"""A row to come, where a condition looks at it."""


def expand_generator(
    projections: tuple[tuple[Expr, ...], ...], fields: tuple[Field, ...], translator: Translator
) -> str:
    """``inline(array(struct(...), ...))``: one output row per projection, columns named as ``fields``."""
    rows = [
        "struct("
        + ", ".join(f"{translator.sql(e)} AS {quote(f.name)}" for e, f in zip(row, fields, strict=True))
        + ")"
        for row in projections
    ]
    return f"inline(array({', '.join(rows)}))"


def unnest_generator(
    collection: Expr,
    generated: tuple[Field, ...],
    outer: bool,
    ordinality: bool,
    condition: Expr | None,
    translator: Translator,
) -> str:
    """UNNEST as ``inline(...)`` with the columns named as ``generated``.

    An array of rows gives the fields of each row; a NULL row is skipped, as in Flink, but counts as a
    position. Another array gives its elements, a map its keys and values, a multiset each element as often as
    it contains the element. ``ordinality`` appends the 1-based position. ``condition``, over the row's
    columns and ``generated``, filters the result.
    """
    elements = _elements(collection, translator.sql(collection))
    columns = generated[:-1] if ordinality else generated
    kind = collection.type
    row = isinstance(kind, ArrayType | MultisetType) and isinstance(kind.element, RowType)
    entry = isinstance(kind, MapType)
    nested = _member_names(collection) if row or entry else ()
    values = (
        [f"e.{quote(m)} AS {quote(c.name)}" for m, c in zip(nested, columns, strict=True)]
        if nested
        else [f"e AS {quote(columns[0].name)}"]
    )
    if ordinality:
        values.append(f"i + 1 AS {quote(generated[-1].name)}")
    parameters = "(e, i)" if ordinality else "e"
    shown = f"struct({', '.join(values)})"
    if row:
        shown = f"IF(e IS NULL, NULL, {shown})"
    body = f"transform({elements}, {parameters} -> {shown})"
    if row:
        body = f"filter({body}, {_ROW} -> {_ROW} IS NOT NULL)"
    if condition is not None:
        body = f"filter({body}, {_ROW} -> {translator.beside(_ROW, generated).sql(condition)})"
    aliases = ", ".join(quote(f.name) for f in generated)
    return f"{'inline_outer' if outer else 'inline'}({body}) AS ({aliases})"


def rows_generator(rows: str, generated: tuple[Field, ...], outer: bool) -> str:
    """A list of rows (structs) as ``inline(...)`` with the columns named as ``generated``."""
    aliases = ", ".join(quote(f.name) for f in generated)
    return f"{'inline_outer' if outer else 'inline'}({rows}) AS ({aliases})"


def _elements(collection: Expr, text: str) -> str:
    if isinstance(collection.type, MultisetType):
        return f"flatten(transform({text}, m -> array_repeat(m.key, m.value)))"
    return text


def _member_names(collection: Expr) -> tuple[str, ...]:
    kind = collection.type
    if isinstance(kind, MapType):
        return ("key", "value")
    if isinstance(kind, ArrayType | MultisetType) and isinstance(kind.element, RowType):
        return tuple(f.name for f in kind.element.fields)
    raise InternalError(f"UNNEST of {kind}")


def replicate_generator(args: tuple[Expr, ...], generated: tuple[Field, ...], translator: Translator) -> str:
    """INTERSECT ALL and EXCEPT ALL: the row of ``args[1:]`` as often as ``args[0]`` says."""
    count, *values = (translator.sql(a) for a in args)
    row = ", ".join(f"{v} AS {quote(f.name)}" for v, f in zip(values, generated, strict=True))
    return f"inline(array_repeat(struct({row}), CAST({count} AS INT)))"
