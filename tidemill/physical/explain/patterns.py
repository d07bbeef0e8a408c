"""MATCH_RECOGNIZE as Flink's plans print it: the pattern, its conditions, its measures."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.operators.match.skip import SkipTo
from tidemill.physical.explain.printer import Form, Printer
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Cast, Expr
from tidemill.plan.patterns import (
    AfterMatch,
    Pattern,
    PatternAggregate,
    PatternColumn,
    PatternVariable,
)
from tidemill.types.logical import Field

Definitions = tuple[tuple[int, Expr], ...]


def pattern_attributes(
    pattern: Pattern,
    definitions: Definitions,
    measures: tuple[Expr, ...],
    fields: Sequence[Field],
    inputs: Sequence[Field],
) -> list[tuple[str, str]]:
    """The attributes after ``orderBy`` in the physical node."""
    printer = Printer.over(inputs)
    names = [f.name for f in fields][len(fields) - len(measures) :]
    measure_texts = [f"FINAL({printer.text(m)}) AS {name}" for m, name in zip(measures, names, strict=True)]
    conditions = [f"{pattern.name(i)}={_condition(x, i)}" for i, x in definitions]
    within = [] if pattern.within is None else [("within", f"[{pattern.within}:INTERVAL]")]
    return [
        ("measures", f"[{', '.join(measure_texts)}]"),
        ("rowsPerMatch", "[ONE ROW PER MATCH]"),
        ("after", f"[{_after(pattern)}]"),
        ("pattern", f"[{_sequence(pattern.variables)}]"),
        *within,
        ("define", f"[{{{', '.join(conditions)}}}]"),
    ]


def match_text(node: n.MatchRecognize) -> str:
    """The attributes of LogicalMatch."""
    order = ", ".join(
        f"{k.index} {'ASC' if k.ascending else 'DESC'}-nulls-{'first' if k.nulls_first else 'last'}"
        for k in node.order
    )
    partition = ", ".join(map(str, node.partition))
    outputs = ", ".join(f.name for f in node.fields)
    inputs = ", ".join(f.name for f in node.input.fields)
    conditions = ", ".join(_condition(x, i) for i, x in node.definitions)
    within = "" if node.pattern.within is None else f"interval=[[{node.pattern.within}:INTERVAL]], "
    return (
        f"partition=[[{partition}]], order=[[{order}]], outputFields=[[{outputs}]], allRows=[false], "
        f"after=[FLAG({_after(node.pattern)})], pattern=[{_sequence(node.pattern.variables)}], "
        f"isStrictStarts=[false], isStrictEnds=[false], {within}subsets=[[]], "
        f"patternDefinitions=[[{conditions}]], inputFields=[[{inputs}]]"
    )


def _after(pattern: Pattern) -> str:
    after: AfterMatch = pattern.after
    named = after.to in (SkipTo.FIRST, SkipTo.LAST)
    return f"{after.to.value} {pattern.name(after.variable)}" if named else after.to.value


def _sequence(variables: tuple[PatternVariable, ...]) -> str:
    text = _variable(variables[0])
    for variable in variables[1:]:
        text = f"({text}, {_variable(variable)})"
    return text


def _variable(variable: PatternVariable) -> str:
    name = f"_UTF-16LE'{variable.name}'"
    if not variable.quantified:
        return name
    most = -1 if variable.most is None else variable.most
    reluctant = str(not variable.greedy).lower()
    return f"PATTERN_QUANTIFIER({name}, {variable.least}, {most}, {reluctant})"


def _condition(expr: Expr, own: int) -> str:
    """Columns by position: of the row itself ``PREV(B.$3, 0)``, of another variable ``LAST(A.$3, 0)``."""
    if isinstance(expr, PatternColumn):
        operand = _operand(expr.operand, expr.name)
        if expr.plain and expr.variable == own:
            return f"PREV({operand}, 0)"
        return f"{'LAST' if expr.last else 'FIRST'}({operand}, {expr.offset})"
    if isinstance(expr, PatternAggregate):
        return f"{expr.function}({', '.join(_operand(a, expr.name) for a in expr.args)})"
    if not expr.children:
        return Printer((), Form.INDEXED).text(expr)
    args = [_condition(c, own) for c in expr.children]
    if isinstance(expr, Cast):
        return f"CAST({args[0]})"
    return f"{expr.function if isinstance(expr, Call) else type(expr).__name__}({', '.join(args)})"


def _operand(operand: Expr, name: str) -> str:
    return Printer((), Form.INDEXED).text(operand).replace("$", f"{name}.$")
