"""Whether there is a row: a left join with distinct members and a mark, as a column of Spark's EXISTS.

So Spark looks for one match of each row, and need not make members distinct, which costs an exchange of all
of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical.batch.nodes import Aggregate, Join
from tidemill.physical.nodes import Calc, PhysicalNode
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import conjuncts
from tidemill.plan.rewrite import input_indexes
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased
from tidemill.runtime.spark.expressions import Translator
from tidemill.spark_internals.class_names import PUSH_PROJECTION_THROUGH_UNION
from tidemill.types.logical import APPROXIMATE_TYPES, COLLECTION_TYPES, INTEGER_TYPES
from tidemill.types.physical import quote, spark_type


def equal_sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """What ``part`` says to be equal, of the left (the first ``width`` columns) and of the right side."""
    if not isinstance(part, Call) or part.function != "=":
        return None
    for left, right in (part.args, part.args[::-1]):
        own, other = input_indexes(left), input_indexes(right)
        if own and other and max(own) < width <= min(other):
            return left, right
    return None


def compares_alike(own: Expr, other: Expr) -> bool:
    """Whether Spark's IN and EXISTS compare values of these types as ours do."""
    kinds = own.type, other.type
    whole = all(isinstance(kind, INTEGER_TYPES) for kind in kinds)
    alike = spark_type(own.type) == spark_type(other.type)
    return whole or (alike and not isinstance(own.type, (*APPROXIMATE_TYPES, *COLLECTION_TYPES)))


BESIDE_UNIONS = {
    # Spark's rule loses the columns that EXISTS compares when it moves the column below a union.
    "spark.sql.optimizer.excludedRules": PUSH_PROJECTION_THROUGH_UNION
}
"""Spark's settings of queries that ask whether there is a row."""
_FOUND = "$found"
_ROW, _MEMBER = "`$l`", "`$r`"


@dataclass(frozen=True, slots=True)
class Existence:
    """``members``: the node whose rows are looked up. ``pairs``: an expression over the left's columns, and
    the column of ``members`` that it must equal. ``shown``: by column of the join's right side the pair with
    its value, None for the mark."""

    members: PhysicalNode
    pairs: tuple[tuple[Expr, int], ...]
    shown: tuple[int | None, ...]


def existence(node: Join) -> Existence | None:
    """What ``node`` asks, where it is nothing else than whether there is a row."""
    if node.kind is not JoinKind.LEFT or node.hint:
        return None
    left, right = node.inputs
    picks: tuple[Expr, ...] = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(right.fields))
    while isinstance(right, Calc) and right.condition is None:
        below = right.projections
        picks = tuple(below[x.index] if isinstance(x, InputRef) else x for x in picks)
        right = right.input
    if not isinstance(right, Aggregate) or right.calls or not right.keys:
        return None
    if not all(isinstance(x, InputRef) or _is_mark(x) for x in picks):
        return None
    keys = {place: x.index for place, x in enumerate(picks) if isinstance(x, InputRef)}
    pairs = _pairs(node, len(left.fields), keys)
    if pairs is None or {key for _, key in pairs} != set(range(len(right.keys))):
        return None
    by_key = {key: number for number, (_, key) in enumerate(pairs)}
    shown = tuple(by_key[keys[place]] if place in keys else None for place in range(len(picks)))
    return Existence(right.input, tuple((own, right.keys[key]) for own, key in pairs), shown)


def asks(root: PhysicalNode) -> bool:
    """Whether a join of the plan is such a question."""
    return any(isinstance(node, Join) and existence(node) is not None for node in walk(root))


def _is_mark(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is True


def _pairs(node: Join, width: int, keys: dict[int, int]) -> list[tuple[Expr, int]] | None:
    """What must be equal, if that is all that must hold and Spark compares it as we do."""
    found = []
    for part in conjuncts(node.condition):
        sides = equal_sides(part, width)
        if sides is None or not isinstance(sides[1], InputRef) or not compares_alike(*sides):
            return None
        found.append((sides[0], keys[sides[1].index - width]))
    return found


def with_existence(node: Join, asked: Existence, left: Relation, members: Relation, zone: str) -> Relation:
    """The joined rows under the node's field names."""
    own = tuple(f.name for f in node.left.fields)
    names = tuple(f.name for f in node.fields)
    left, members = left.shallow(), members.shallow()
    inner = [f"`$m{i}`" for i in range(len(asked.members.fields))]
    translator = Translator(columns=own, zone=zone, tables=(_ROW,) * len(own))
    equal = " AND ".join(f"{translator.sql(x)} = {inner[column]}" for x, column in asked.pairs)
    rows = f"{members.item} AS {_MEMBER}({', '.join(inner)})"
    columns = *map(quote, own), f"EXISTS (SELECT 1 FROM {rows} WHERE {equal}) AS {quote(_FOUND)}"
    found = (left, members)[left.depth < members.depth].around(
        f"SELECT {', '.join(columns)} FROM {left.named(_ROW, own)}", (*own, _FOUND)
    )
    plain = Translator(columns=own, zone=zone)
    texts = []
    for place, field in zip(asked.shown, node.right.fields, strict=True):
        value = "TRUE" if place is None else plain.sql(asked.pairs[place][0])
        texts.append(f"CASE WHEN {quote(_FOUND)} THEN CAST({value} AS {spark_type(field.type)}) END")
    return found.select(aliased([*map(quote, own), *texts], names), names)
