"""Joins in batch: Spark's joins over frames whose columns were made unique by position.

NOT IN is true for a row whose value equals no value of the other side, unless a value is NULL there, or the
row's own is and there is any row: three anti joins by hash, of which the last two concern NULLs only. Where
a column cannot be NULL its part is left out. What else must hold for two rows to match holds in all three.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.errors import NotSupportedError
from tidemill.functions.values import matching
from tidemill.physical.batch.nodes import Join
from tidemill.physical.conditions import loose_pair
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import conjuncts
from tidemill.plan.rules.construct import predicate
from tidemill.plan.rules.determinism import has_user_call
from tidemill.runtime.spark.batch_frames.relation import NO_COLUMN, Relation, aliased
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import APPROXIMATE_TYPES
from tidemill.types.physical import quote

_SQL_KIND = {
    JoinKind.INNER: "INNER",
    JoinKind.LEFT: "LEFT OUTER",
    JoinKind.RIGHT: "RIGHT OUTER",
    JoinKind.FULL: "FULL OUTER",
    JoinKind.SEMI: "LEFT SEMI",
    JoinKind.ANTI: "LEFT ANTI",
}
_SPARK_HINTS = {
    "BROADCAST": "broadcast",
    "NEST_LOOP": "broadcast",
    "SHUFFLE_HASH": "shuffle_hash",
    "SHUFFLE_MERGE": "merge",
}
_ALIASES = {"left": "`$l`", "right": "`$r`"}
_ANTI = "left_anti"
_MISSING = "$missing"
_ANY = "$any"


def joined(node: Join, left: Relation, right: Relation, zone: str) -> Relation:
    """The joined rows under the node's field names."""
    _refuse_calls_across(node)
    left, right = left.shallow(), right.shallow()
    outer, names = (left, right)[left.depth < right.depth], tuple(f.name for f in node.fields)
    columns, translator = _sides(node, zone)
    condition = _condition(conjuncts(node.condition), translator)
    hint = _hint(node)
    shown = aliased([quote(c) for side in columns for c in side][: len(names)], names)
    return outer.around(
        f"SELECT {hint} {', '.join(shown) or NO_COLUMN} FROM {left.named(_ALIASES['left'], columns[0])} "
        f"{_SQL_KIND[node.kind]} JOIN {right.named(_ALIASES['right'], columns[1])} ON {condition}",
        names,
    )


def not_in_frame(node: Join, left: DataFrame, right: DataFrame, zone: str) -> DataFrame:
    """The rows of ``left`` under the node's field names."""
    _refuse_calls_across(node)
    left_names, right_names = (
        tuple(f"{x}{i}" for i in range(len(s.fields))) for x, s in zip("lr", node.sources, strict=True)
    )
    shown = tuple(f.name for side in node.sources for f in side.fields)
    translator = Translator(columns=(*left_names, *right_names), zone=zone, names=shown)
    found = _not_in(node, left.toDF(*left_names), right.toDF(*right_names), translator)
    return found.toDF(*(f.name for f in node.fields))


def _sides(node: Join, zone: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], Translator]:
    """Names of both sides' columns that are unique, and the translator of what is over them. Only the right's
    that the left has, too, get others: each would be one more column for Spark to plan."""
    left, right = (tuple(f.name for f in side.fields) for side in node.sources)
    taken = frozenset(left)
    named = tuple(f"$right{i}" if name in taken else name for i, name in enumerate(right))
    return (left, named), Translator(columns=(*left, *named), zone=zone, names=(*left, *right))


def _hint(node: Join) -> str:
    """Spark takes a hint of the side that is built; of a merge there is none."""
    found = [f"{_SPARK_HINTS[node.hint]}({_ALIASES[node.build or 'left']})"] if node.hint else []
    found += [f"broadcast({_ALIASES[node.broadcast]})"] if node.broadcast else []
    return f"/*+ {', '.join(found)} */" if found else ""


def _not_in(node: Join, left: DataFrame, right: DataFrame, translator: Translator) -> DataFrame:
    def sent(frame: DataFrame) -> DataFrame:
        return frame.hint("broadcast") if node.broadcast else frame

    width = len(node.sources[0].fields)
    parts = [(part, loose_pair(part, width)) for part in conjuncts(node.condition)]
    pairs = [pair for _, pair in parts if pair is not None]
    strict = [part if pair is None else predicate("=", *pair) for part, pair in parts]
    equal = F.expr(_condition(strict, translator))
    aware = translator.sql(node.condition)
    found = left.join(sent(right), equal, _ANTI)
    others = _any_null(translator, [x for _, x in pairs])
    if others:
        found = found.join(sent(right.where(others).distinct()), F.expr(aware), _ANTI)
    own = _any_null(translator, [x for x, _ in pairs])
    if own:
        # With one value to compare it is enough that there is a row.
        some = right.limit(1) if len(parts) == 1 else right.distinct()
        missing = found.withColumn(_MISSING, F.expr(own))
        met = sent(some.withColumn(_ANY, F.lit(True)))
        found = missing.join(met, F.expr(f"{quote(_MISSING)} = {quote(_ANY)} AND ({aware})"), _ANTI)
    return found.select(*left.columns)


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
