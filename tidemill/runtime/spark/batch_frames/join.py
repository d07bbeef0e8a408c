"""Joins in batch: Spark's joins of relations.

A semi join that looks up values among few is Spark's IN, because Spark optimises conditions better than
joins. Other semi and anti joins by equalities are its [NOT] EXISTS.

NOT IN is true for a row whose value equals no value of the other side. It is not true if the other side
has a NULL, or if the row's own value is NULL and the other side has any row. If one value is compared and the
other side is small, the join is Spark's own NOT IN. Otherwise it is three anti joins by hash. The last two
concern only NULLs: the part of a column that cannot be NULL is left out. Further conditions for a match apply
in all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.functions.values import marked, matching, unmarked
from tidemill.physical.batch.nodes import Aggregate, Join
from tidemill.physical.batch.volumes import read_bytes
from tidemill.physical.conditions import loose_pair
from tidemill.physical.joins.planning import split_condition
from tidemill.physical.nodes import Calc
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rules.construct import predicate
from tidemill.plan.rules.determinism import drawn_by, has_user_call
from tidemill.runtime.spark.batch_frames.existence import compares_alike, equal_sides
from tidemill.runtime.spark.batch_frames.relation import NO_COLUMN, Relation, aliased
from tidemill.runtime.spark.batch_frames.stopping import is_single, stoppable
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import APPROXIMATE_TYPES, Field, LogicalType
from tidemill.types.physical import quote
from tidemill.types.values import has_floats

_SQL_KIND = {
    JoinKind.INNER: "INNER",
    JoinKind.LEFT: "LEFT OUTER",
    JoinKind.RIGHT: "RIGHT OUTER",
    JoinKind.FULL: "FULL OUTER",
    JoinKind.SEMI: "LEFT SEMI",
    JoinKind.ANTI: "LEFT ANTI",
}
_EXISTENCE = {JoinKind.SEMI: "EXISTS", JoinKind.ANTI: "NOT EXISTS"}
_SPARK_HINTS = {
    "BROADCAST": "broadcast",
    "NEST_LOOP": "broadcast",
    "SHUFFLE_HASH": "shuffle_hash",
    "SHUFFLE_MERGE": "merge",
}
_ALIASES = {"left": "`$l`", "right": "`$r`"}
_ANY = "$any"
_QUICKLY_SENT = 128 << 20
"""So many bytes of tables may be read for what is sent to every task without being known to be few."""
_Columns = tuple[tuple[str, ...], tuple[str, ...]]
"""Of the left and of the right side."""


def joined(node: Join, left: Relation, right: Relation, zone: str) -> Relation:
    """The joined rows under the node's field names."""
    _refuse_calls_across(node)
    drawn = [part for part in conjuncts(node.condition) if drawn_by(part)]
    if drawn and node.kind not in _EXISTENCE:
        return _where_drawn(node, drawn, left, right, zone)
    columns, translator = _qualified(node, zone)
    members = _members(node)
    if members:
        own, other = (", ".join(map(translator.sql, side)) for side in zip(*members, strict=True))
        return _among(node, left, right, f"({own}) IN", other)
    if _is_scalar(node):
        return _beside_value(node, left, right, zone)
    if _multiplies(node):
        left, right = stoppable(left), stoppable(right)
    elif node.kind in _EXISTENCE and not node.hint:
        return _where_met(node, left, right, zone)
    left, right = left.shallow(), right.shallow()
    outer, names = (left, right)[left.depth < right.depth], tuple(f.name for f in node.fields)
    condition = _condition(conjuncts(node.condition), translator)
    hint = _hint(node)
    texts = [translator.sql(InputRef(type=f.type, index=i)) for i, f in enumerate(_both(node))]
    shown = aliased(texts[: len(names)], names)
    return outer.around(
        f"SELECT {hint} {', '.join(shown) or NO_COLUMN} FROM {left.named(_ALIASES['left'], columns[0])} "
        f"{_SQL_KIND[node.kind]} JOIN {right.named(_ALIASES['right'], columns[1])} ON {condition}",
        names,
    )


def _where_drawn(node: Join, drawn: Sequence[Expr], left: Relation, right: Relation, zone: str) -> Relation:
    """``drawn``: what in the condition draws a value for each pair of rows. Spark takes that in no join, only
    of the rows that one gives."""
    if node.kind is not JoinKind.INNER:
        names = dict.fromkeys(name for part in drawn for name in drawn_by(part))
        raise NotSupportedError(
            f"{', '.join(names)} in a condition over both sides of a {node.kind.value} in batch mode is not "
            "supported",
            hint="Compute it as a column of one side first.",
        )
    certain = conjunction(part for part in conjuncts(node.condition) if part not in drawn)
    rows = joined(replace(node, condition=certain), left, right, zone)
    asked = Translator(columns=rows.columns, zone=zone)
    return rows.select(list(map(quote, rows.columns)), rows.columns, f"WHERE {_condition(drawn, asked)}")


def unsent(node: Join) -> Join:
    """The same join, no side of which has to be sent to every task; what was asked for is not done then."""
    sent = _SPARK_HINTS.get(node.hint) == "broadcast"
    return replace(node, broadcast="", hint="" if sent else node.hint)


def not_in(node: Join, left: Relation, right: Relation, zone: str, quick: bool) -> Relation:
    """The rows of ``left`` under the node's field names. A ``quick`` one takes the right side for small where
    what it is made of is."""
    _refuse_calls_across(node)
    parts = [(part, loose_pair(part, len(node.left.fields))) for part in conjuncts(node.condition)]
    pairs = [pair for _, pair in parts if pair is not None]
    read = read_bytes(node.right)
    small = bool(node.broadcast) or (quick and read is not None and read <= _QUICKLY_SENT)
    if small and len(parts) == len(pairs) == 1 and compares_alike(*pairs[0]):
        _, translator = _qualified(node, zone)
        own, other = map(translator.sql, pairs[0])
        return _among(node, left, right, f"{own} NOT IN", other)
    columns, translator = _unique(node, zone)
    strict = [part if pair is None else predicate("=", *pair) for part, pair in parts]
    equal, aware = _condition(strict, translator), translator.sql(node.condition)
    others, missing = (_any_null(translator, [pair[side] for pair in pairs]) for side in (1, 0))
    kinds = tuple(f.type for f in node.right.fields)
    anti = _AntiJoins(columns, kinds, "/*+ broadcast(`$r`) */" if node.broadcast else "")
    found = anti.rows(left, right.view(), equal, aware, others, missing, len(parts) == 1)
    return found.renamed(tuple(f.name for f in node.fields))


def _members(node: Join) -> list[tuple[Expr, Expr]]:
    """What is looked for on either side by a semi join that is an IN with few values; none for any other.

    As a condition it goes where Spark's go: along equalities of other joins, too, and below aggregations.
    """
    if node.kind is not JoinKind.SEMI or not node.broadcast or node.hint:
        return []
    width = len(node.left.fields)
    pairs = [equal_sides(part, width) for part in conjuncts(node.condition)]
    found = [pair for pair in pairs if pair is not None and compares_alike(*pair)]
    return found if len(found) == len(pairs) else []


def _where_met(node: Join, left: Relation, right: Relation, zone: str) -> Relation:
    """The left rows that meet one of the right's, or none, as Spark's [NOT] EXISTS. Of a join Spark infers
    first that what is compared is not NULL, and asks the files for that, which for many small ones costs more
    than the NULLs."""
    _, translator = _qualified(node, zone)
    hint = "/*+ broadcast(`$r`) */" if node.broadcast == "right" else ""
    where = f"WHERE {_condition(conjuncts(node.condition), translator)}"
    return _among(node, left, right, _EXISTENCE[node.kind], f"{hint} 1", where)


def _among(
    node: Join, left: Relation, right: Relation, condition: str, other: str, where: str = ""
) -> Relation:
    """The left rows for which ``condition``, as [NOT] IN, holds of ``other`` of the right's rows, those that
    ``where`` takes. Spark sends the right side of NOT IN to every task, whatever its size: it must be known
    to be small."""
    left, right = left.shallow(), right.shallow()
    own, others = (tuple(f.name for f in side.fields) for side in node.inputs)
    names = tuple(f.name for f in node.fields)
    return (left, right)[left.depth < right.depth].around(
        f"SELECT {', '.join(aliased(list(map(quote, own)), names)) or NO_COLUMN} "
        f"FROM {left.named(_ALIASES['left'], own)} "
        f"WHERE {condition} (SELECT {other} FROM {right.named(_ALIASES['right'], others)} {where})",
        names,
    )


def _is_scalar(node: Join) -> bool:
    """Whether the right side is one value, which there always is."""
    right = node.right
    # All rows meet the one there is, so that an outer join has none to add.
    certain = node.kind is JoinKind.LEFT and not conjuncts(node.condition)
    if not (certain or node.kind is JoinKind.INNER) or node.hint or len(right.fields) != 1:
        return False
    while isinstance(right, Calc) and right.condition is None:
        right = right.input
    return isinstance(right, Aggregate) and not right.keys


def _beside_value(node: Join, left: Relation, right: Relation, zone: str) -> Relation:
    """The right's value as a scalar sub-query: Spark knows it before it reads what is compared with it. So a
    condition goes below other joins and aggregations, to row groups and to partitions, as no join's does."""
    (own, value), translator = _unique(node, zone)
    left, right = left.shallow(), right.shallow()
    outer, names = (left, right)[left.depth < right.depth], tuple(f.name for f in node.fields)
    read = f"(SELECT {quote(value[0])} FROM {right.named(_ALIASES['right'], value)})"
    texts, rows = [*map(quote, own), read], left.named(_ALIASES["left"], own)
    conditions = conjuncts(node.condition)
    if not conditions:
        return outer.around(f"SELECT {', '.join(aliased(texts, names))} FROM {rows}", names)
    both = outer.around(f"SELECT {', '.join(aliased(texts, (*own, *value)))} FROM {rows}", (*own, *value))
    shown = aliased(list(map(quote, both.columns)), names)
    return both.select(shown, names, f"WHERE {_condition(conditions, translator)}")


@dataclass(frozen=True, slots=True)
class _AntiJoins:
    """NOT IN by three of them; ``kinds``: the types of the right side's columns; ``hint``: of each one's
    right side."""

    columns: _Columns
    kinds: tuple[LogicalType, ...]
    hint: str

    def rows(
        self, left: Relation, right: Relation, equal: str, aware: str, others: str, own: str, single: bool
    ) -> Relation:
        """``equal``: the condition under which rows match; ``aware``: the condition under which they might
        match because of NULL. ``others`` and ``own``: the condition that a compared value is NULL on the
        right and on the left; '' if none can be NULL. ``single``: one value is compared, and nothing else."""
        names = self.columns[1]
        right = right.renamed(names)
        found = self._anti(left.renamed(self.columns[0]), right, equal)
        if others:
            found = self._anti(stoppable(found), self._distinct(right, f"WHERE {others}"), aware)
        if own:
            # With one value to compare it is enough that there is a row.
            texts = list(map(quote, names))
            some = right.select(texts, names, "LIMIT 1") if single else self._distinct(right)
            some = some.with_columns([f"TRUE AS {quote(_ANY)}"], (_ANY,))
            found = self._anti(
                found if single else stoppable(found), some, f"({own}) = {quote(_ANY)} AND ({aware})"
            )
        return found

    def _distinct(self, right: Relation, where: str = "") -> Relation:
        """Different rows stay apart, also those that differ in a zero's sign alone, which Spark's DISTINCT
        does not see."""
        names = right.columns
        first, *others = (marked(quote(x), kind) for x, kind in zip(names, self.kinds, strict=True))
        found = right.select(aliased([f"DISTINCT {first}", *others], names), names, where)
        if not any(map(has_floats, self.kinds)):
            return found
        texts = [unmarked(quote(x), kind) for x, kind in zip(names, self.kinds, strict=True)]
        return found.select(aliased(texts, names), names)

    def _anti(self, left: Relation, right: Relation, condition: str) -> Relation:
        left, right = left.shallow(), right.shallow()
        shown = ", ".join(map(quote, left.columns))
        return (left, right)[left.depth < right.depth].around(
            f"SELECT {self.hint} {shown} FROM {left.item} AS {_ALIASES['left']} "
            f"LEFT ANTI JOIN {right.item} AS {_ALIASES['right']} ON {condition}",
            left.columns,
        )


def _multiplies(node: Join) -> bool:
    """Whether Spark has to look at all pairs of rows, of two sides that may both have several."""
    left, right = node.inputs
    keys, _ = split_condition(node.condition, len(left.fields))
    return not keys and not is_single(left) and not is_single(right)


def _both(node: Join) -> tuple[Field, ...]:
    return tuple(f for side in node.inputs for f in side.fields)


def _qualified(node: Join, zone: str) -> tuple[_Columns, Translator]:
    """The columns of both sides, and the translator of expressions over them. A column that both sides have
    is qualified with its side. It keeps its name, because Spark would not recognise a side with renamed
    columns as one that it has already read."""
    left, right = (tuple(f.name for f in side.fields) for side in node.inputs)
    shared = frozenset(left) & frozenset(right)
    tables = [
        _ALIASES[side] if name in shared else ""
        for side, names in (("left", left), ("right", right))
        for name in names
    ]
    return (left, right), Translator(columns=(*left, *right), zone=zone, tables=tuple(tables))


def _unique(node: Join, zone: str) -> tuple[_Columns, Translator]:
    """As ``_qualified``, by names alone: those of the right's that the left has, too, are others."""
    left, right = (tuple(f.name for f in side.fields) for side in node.inputs)
    taken = frozenset(left)
    named = tuple(f"$right{i}" if name in taken else name for i, name in enumerate(right))
    return (left, named), Translator(columns=(*left, *named), zone=zone, names=(*left, *right))


def _hint(node: Join) -> str:
    """Spark takes a hint of the side that is built; of a merge there is none."""
    found = [f"{_SPARK_HINTS[node.hint]}({_ALIASES[node.build or 'left']})"] if node.hint else []
    found += [f"broadcast({_ALIASES[node.broadcast]})"] if node.broadcast else []
    return f"/*+ {', '.join(found)} */" if found else ""


def _condition(parts: Sequence[Expr], translator: Translator) -> str:
    """Equal FLOATs as Spark can hash them: a join asks only whether its condition is TRUE."""
    return " AND ".join(_part(part, translator) for part in parts) or "TRUE"


def _part(part: Expr, translator: Translator) -> str:
    if not isinstance(part, Call) or part.function != "=":
        return translator.sql(part)
    a, b = part.args
    if not isinstance(a.type, APPROXIMATE_TYPES) or not isinstance(b.type, APPROXIMATE_TYPES):
        return translator.sql(part)
    return f"({matching(translator.sql(a), a.type)} = {matching(translator.sql(b), b.type)})"


def _any_null(translator: Translator, expressions: list[Expr]) -> str:
    """A condition that one of them is NULL; '' where none can be."""
    return " OR ".join(f"({translator.sql(x)}) IS NULL" for x in expressions if x.type.nullable)


def _refuse_calls_across(node: Join) -> None:
    """What is left of user functions in a condition reads both sides."""
    if has_user_call(node.condition):
        raise NotSupportedError(
            f"A user-defined function over both sides of a {node.kind.value} in batch mode is not supported"
        )
