"""The JSON functions with SQL's own syntax; their keywords become options of the call.

- ``RETURNING``: the text of a type.
- ``ON EMPTY`` and ``ON ERROR``: a behaviour. DEFAULT values become further arguments, ON EMPTY's first.
- ``WRAPPER``: WITHOUT, CONDITIONAL or UNCONDITIONAL.
- ``NULLS``: NULL ON NULL or ABSENT ON NULL.
- ``RAW``: the indexes of arguments that JSON_OBJECT, JSON_ARRAY or JSON made. They are JSON text, and not
  quoted again. The rule ``nest_json`` adds arguments that come from a query below, and values of aggregates.
"""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan.binder.expressions.binding import ExpressionBinder, Handler
from tidemill.plan.binder.expressions.calls import Options
from tidemill.plan.binder.expressions.functions import bound_aggregate
from tidemill.plan.expressions import Expr
from tidemill.plan.rules.nest_json import raw
from tidemill.sql import expressions as x
from tidemill.sql.positions import position_of


def _behaviour(node: exp.Expr, slot: str, option: str) -> Options:
    behaviour = node.args.get(slot)
    return () if behaviour is None else ((option, str(behaviour.args["kind"])),)


def _defaults(binder: ExpressionBinder, node: exp.Expr) -> tuple[Expr, ...]:
    behaviours = [node.args.get(slot) for slot in ("on_empty", "on_error")]
    return tuple(binder.bind(b.this) for b in behaviours if b is not None and b.args["kind"] == "DEFAULT")


def _returning(node: exp.Expr) -> Options:
    spec = node.args.get("returning")
    return (("RETURNING", str(spec.logical)),) if isinstance(spec, x.TypeSpec) else ()


def _value(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    args = (*binder.bind_all([node.this, node.args["path"]]), *_defaults(binder, node))
    options = (*_returning(node), *_behaviours(node))
    return binder.call("JSON_VALUE", args, node, options)


def _behaviours(node: exp.Expr) -> Options:
    return (*_behaviour(node, "on_empty", "ON EMPTY"), *_behaviour(node, "on_error", "ON ERROR"))


def _query(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    wrapper = node.args.get("wrapper")
    wrapped: Options = () if wrapper is None else (("WRAPPER", str(wrapper)),)
    args = binder.bind_all([node.this, node.args["path"]])
    return binder.call("JSON_QUERY", args, node, (*_returning(node), *wrapped, *_behaviours(node)))


def _exists(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    args = binder.bind_all([node.this, node.args["path"]])
    return binder.call("JSON_EXISTS", args, node, _behaviour(node, "on_error", "ON ERROR"))


def _is_json(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    return binder.call(f"IS JSON {node.args['kind']}", (binder.bind(node.this),), node)


def _nulls(node: exp.Expr, default: str) -> Options:
    return (("NULLS", f"{node.args.get('on_null') or default} ON NULL"),)


def _object(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    nodes = [n for pair in node.expressions for n in (pair.this, pair.expression)]
    args = binder.bind_all(nodes)
    return binder.call("JSON_OBJECT", args, node, (*_nulls(node, "NULL"), *raw(args)))


def _array(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    args = binder.bind_all(node.expressions)
    return binder.call("JSON_ARRAY", args, node, (*_nulls(node, "ABSENT"), *raw(args)))


def _aggregate(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """JSON_OBJECTAGG(KEY k VALUE v) and JSON_ARRAYAGG(v)."""
    if isinstance(node, x.JsonObjectAgg):
        name, nodes, default = "JSON_OBJECTAGG", [node.this.this, node.this.expression], "NULL"
    else:
        name, nodes, default = "JSON_ARRAYAGG", [node.this], "ABSENT"
    if node.args.get("order") is not None:
        raise NotSupportedError(f"ORDER BY in {name} is not supported", position=position_of(node))
    function = binder.context.environment.aggregate_function(name)
    if function is None:
        raise ValidationError(f"No match found for function signature {name}", position=position_of(node))
    return bound_aggregate(binder, function, nodes, node, options=_nulls(node, default))


HANDLERS: dict[type[exp.Expr], Handler] = {
    x.JsonValue: _value,
    x.JsonQuery: _query,
    x.JsonExists: _exists,
    x.IsJson: _is_json,
    x.JsonObject: _object,
    x.JsonArray: _array,
    x.JsonObjectAgg: _aggregate,
    x.JsonArrayAgg: _aggregate,
}
