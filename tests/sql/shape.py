"""A syntax tree as a short text, so that tests can say which tree they want."""

from __future__ import annotations

from sqlglot import exp

from tidemill.sql.parser import parse_expression, parse_statement
from tidemill.sql.statements import Query


def shape(node: object) -> str:
    """``(Add a (Mul b 2))``: class names and leaves; names and numbers as written, strings quoted."""
    if isinstance(node, exp.Literal):
        return repr(node.this) if node.is_string else str(node.this)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return ".".join(part.name for part in node.parts)
    if isinstance(node, exp.Identifier | exp.Var):
        return str(node.name)
    if isinstance(node, exp.Anonymous):
        return "(" + " ".join([str(node.this), *map(shape, node.expressions)]) + ")"
    if isinstance(node, exp.Expression):
        parts = [shape(v) for value in node.args.values() for v in _listed(value)]
        return "(" + " ".join([type(node).__name__, *parts]) + ")" if parts else type(node).__name__
    return str(node)


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return list(value)
    return [] if value is None or value is False else [value]


def expression(text: str) -> str:
    return shape(parse_expression(text))


def query(text: str) -> exp.Expression:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return statement.tree
