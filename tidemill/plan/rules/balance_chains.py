"""Turn a long chain of one associative operator into a shallow tree.

    before: ((a + b) + c) + d
    after:  (a + b) + (c + d)

Spark generates the code of an expression around the code of its operands, level by level. So a chain of a
thousand terms would cost a million steps. Every pass over the plan also recurses as deep as the chain.

The rule applies only to operators whose grouping does not matter: AND, OR, string concatenation, and sums and
products of integers, which wrap around. The order of the operands stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.plan.expressions import Call, Expr
from tidemill.plan.nodes import LogicalNode
from tidemill.plan.rewrite import map_down, map_node_expressions
from tidemill.types import logical as t

LONG = 32
_INTEGERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)
_ASSOCIATIVE: dict[str, tuple[type[t.LogicalType], ...]] = {
    "AND": (t.BooleanType,),
    "OR": (t.BooleanType,),
    "||": (t.VarCharType,),
    "+": _INTEGERS,
    "*": _INTEGERS,
}


def balance_chains(node: LogicalNode) -> LogicalNode | None:
    balanced = map_node_expressions(node, _balanced)
    return None if balanced is node else balanced


def _balanced(expr: Expr) -> Expr:
    return map_down(expr, _one)


def _one(expr: Expr) -> Expr | None:
    """Balances a chain as a whole, from its end: level by level the tree would be rebuilt for each longer
    chain."""
    if not isinstance(expr, Call) or not _is_chain(expr) or _length(expr) <= LONG:
        return None
    return _tree(expr, [_balanced(operand) for operand in _operands(expr)], top=True)


def _is_chain(call: Call) -> bool:
    """Whether the call may be regrouped with a call of the same function: its operands have its type."""
    kinds = _ASSOCIATIVE.get(call.function)
    if kinds is None or len(call.args) != 2 or not isinstance(call.type, kinds):
        return False
    return all(_plain(a.type) == _plain(call.type) for a in call.args)


def _plain(kind: t.LogicalType) -> t.LogicalType:
    return kind.with_nullable(True)


def _same_chain(expr: Expr, call: Call) -> bool:
    return isinstance(expr, Call) and expr.function == call.function and _is_chain(expr)


def _length(call: Call) -> int:
    """The number of calls along the left side of the chain."""
    length = 1
    left = call.args[0]
    while isinstance(left, Call) and _same_chain(left, call):
        length += 1
        left = left.args[0]
    return length


def _operands(call: Call) -> list[Expr]:
    operands: list[Expr] = []
    waiting: list[Expr] = [call]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Call) and _same_chain(expr, call):
            waiting += reversed(expr.args)
        else:
            operands.append(expr)
    return operands


def _tree(call: Call, operands: Sequence[Expr], *, top: bool = False) -> Expr:
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    args = (_tree(call, operands[:middle]), _tree(call, operands[middle:]))
    kind = call.type if top else call.type.with_nullable(any(x.type.nullable for x in operands))
    return Call(type=kind, function=call.function, args=args)
