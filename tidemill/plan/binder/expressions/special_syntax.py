"""Functions with keywords between their arguments: patterns, units, TRIM, and ANY/ALL comparisons.

The keywords become options of the call: ``unit`` of EXTRACT, FLOOR and CEIL, ``MODE`` of TRIM.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from tidemill.errors import NotSupportedError
from tidemill.plan.binder.expressions import quantified
from tidemill.plan.binder.expressions.binding import ExpressionBinder, Handler
from tidemill.plan.binder.expressions.operators import BINARY
from tidemill.plan.binder.expressions.subqueries import in_query
from tidemill.plan.expressions import Expr
from tidemill.sql.expressions import ArrayQuery, MultisetLiteral
from tidemill.sql.positions import position_of

PATTERNS: dict[type[exp.Expr], str] = {exp.Like: "LIKE", exp.SimilarTo: "SIMILAR TO"}


def _pattern(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """x LIKE pattern, x SIMILAR TO pattern."""
    return binder.call(PATTERNS[type(node)], binder.bind_all([node.this, node.expression]), node)


def _escape(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """pattern match ESCAPE character."""
    match = node.this
    args = binder.bind_all([match.this, match.expression, node.expression])
    return binder.call(PATTERNS[type(match)], args, node)


def _extract(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    unit = node.this.name.upper()
    return binder.call("EXTRACT", (binder.bind(node.expression),), node, (("unit", unit),))


def _rounding(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        unit = node.args["to"].name.upper()
        return binder.call(name, (binder.bind(node.this),), node, (("unit", unit),))

    return bind


def _trim(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    characters = node.args.get("expression")
    nodes = [node.this] if characters is None else [node.this, characters]
    mode = str(node.args.get("position") or "BOTH").upper()
    return binder.call("TRIM", binder.bind_all(nodes), node, (("MODE", mode),))


def _quantified(name: str, plain: Handler) -> Handler:
    """``x op ANY (...)`` and ``x op ALL (...)``, else the plain comparison."""

    def bind(binder: ExpressionBinder, node: exp.Expr) -> Expr:
        quantifier = node.expression
        if not isinstance(quantifier, exp.Any | exp.All):
            return plain(binder, node)
        if isinstance(quantifier.this, exp.Tuple):
            return _over_list(binder, node, name, quantifier)
        return _over_query(binder, node, name, quantifier)

    return bind


def _over_list(binder: ExpressionBinder, node: exp.Expr, name: str, quantifier: exp.Expr) -> Expr:
    left = binder.bind(node.this)
    parts = [binder.call(name, (left, binder.bind(x)), node) for x in quantifier.this.expressions]
    connector = "OR" if isinstance(quantifier, exp.Any) else "AND"
    return reduce(lambda a, b: binder.call(connector, (a, b), node), parts)


def _over_query(binder: ExpressionBinder, node: exp.Expr, name: str, quantifier: exp.Expr) -> Expr:
    any_of = isinstance(quantifier, exp.Any)
    if name == "=" and any_of:
        return in_query(binder, node, quantifier.this)
    if name == "<>" and not any_of:
        return binder.call("NOT", (in_query(binder, node, quantifier.this),), node)
    return quantified.compare(binder, node, name, quantifier.this, any_of)


def _multiset(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    return binder.call("MULTISET", binder.bind_all(node.expressions), node)


def _from_query(_: ExpressionBinder, node: exp.Expr) -> Expr:
    raise NotSupportedError(f"{node.args['kind']}(query) is not supported", position=position_of(node))


def _refused(feature: str) -> Handler:
    def bind(_: ExpressionBinder, node: exp.Expr) -> Expr:
        raise NotSupportedError(f"{feature} is not supported here", position=position_of(node))

    return bind


def quantifiable(handlers: dict[type[exp.Expr], Handler]) -> dict[type[exp.Expr], Handler]:
    """The comparison handlers with support for ANY and ALL."""
    comparisons = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
    return {kind: _quantified(BINARY[kind], handlers[kind]) for kind in comparisons}


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Like: _pattern,
    exp.SimilarTo: _pattern,
    exp.Escape: _escape,
    exp.Extract: _extract,
    exp.Floor: _rounding("FLOOR"),
    exp.Ceil: _rounding("CEIL"),
    exp.Trim: _trim,
    MultisetLiteral: _multiset,
    ArrayQuery: _from_query,
    exp.Kwarg: _refused("A named argument"),
    exp.WithinGroup: _refused("WITHIN GROUP"),
    exp.Order: _refused("ORDER BY in an aggregate"),
}
