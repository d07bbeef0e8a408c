"""Calc: a filter and a projection."""

from __future__ import annotations

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjuncts, constant
from tidemill.physical.digests import hashed, joined
from tidemill.physical.explain.attributes.dispatch import attributes, node_name
from tidemill.physical.explain.attributes.texts import Attributes, bracket
from tidemill.physical.explain.costs import Cost, own_cost, share
from tidemill.physical.explain.notes import note_of_above, runs_otherwise, stands_above
from tidemill.physical.explain.printer import Form, Printer
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage, column_of, text_of
from tidemill.physical.names import free_name
from tidemill.physical.sinks import producer, producer_below
from tidemill.physical.traits.arrival import arrival_of, as_inputs
from tidemill.physical.traits.changelog_mode import (
    Updates,
    kinds_of_inputs,
    modifications,
    needs_same_form,
    satisfied,
    updates,
)
from tidemill.physical.traits.determinism import keeps_values
from tidemill.physical.traits.event_time import is_current_watermark, passes_watermarks, reads_watermark
from tidemill.physical.traits.keys import Key, Keys, derived_keys, keeps_distinct
from tidemill.physical.traits.mini_batch import always
from tidemill.physical.traits.monotonicity import Moves, directions, never_negative
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, Literal, UserCall
from tidemill.plan.rules.determinism import is_deterministic

_MAX_KEYS = 64

modifications.register(p.Calc, kinds_of_inputs)
producer.register(p.Calc, producer_below)
arrival_of.register(p.Calc, as_inputs)
passes_watermarks.register(p.Calc, always)


@satisfied.register
def _(node: p.Calc, update_form: Updates) -> p.PhysicalNode | None:
    # A filter may drop the +U alone, so the consumer would keep the old row without a -U.
    filters = node.condition is not None and not _filters_elements(node)
    if filters and update_form is Updates.AFTER and updates(node.input):
        return None
    return needs_same_form(node, update_form)


def _filters_elements(node: p.Calc) -> bool:
    """Whether the condition only reads the columns of a Correlate below: the elements of a row pass or fail
    in the -U and in the +U alike."""
    if node.condition is None or not isinstance(node.input, p.Correlate):
        return False
    outer = len(node.input.input.fields)
    return all(x.index >= outer for x in node.condition.walk() if isinstance(x, InputRef))


@directions.register
def _(node: p.Calc) -> tuple[Moves, ...]:
    below = directions(node.input)
    return tuple(below[x.index] if isinstance(x, InputRef) else Moves.ANYHOW for x in node.projections)


@never_negative.register
def _(node: p.Calc, column: int) -> bool:
    source = node.projections[column]
    if not isinstance(source, InputRef):
        return False
    parts = conjuncts(node.condition) if node.condition is not None else []
    return any(_bounds(x, source.index) for x in parts) or never_negative(node.input, source.index)


def _bounds(part: Expr, column: int) -> bool:
    if not isinstance(part, Call) or part.function not in (">", ">=") or len(part.args) != 2:
        return False
    left, limit = part.args[0], constant(part.args[1])
    at_column = isinstance(left, InputRef) and left.index == column
    return at_column and isinstance(limit, int | float) and limit >= 0


@derived_keys.register
def _(node: p.Calc, inputs: tuple[Keys, ...]) -> Keys:
    positions: dict[int, list[int]] = {}
    for position, projection in enumerate(node.projections):
        source = _carried(projection)
        if source is not None:
            positions.setdefault(source, []).append(position)
    return frozenset(k for key in inputs[0] for k in _placed(key, positions))


def _placed(key: Key, positions: dict[int, list[int]]) -> set[Key]:
    """All forms of ``key`` in output columns; a column may be projected more than once."""
    combinations: set[Key] = {frozenset()}
    for column in key:
        combinations = {
            k | {output_index} for k in combinations for output_index in positions.get(column, ())
        }
        if len(combinations) > _MAX_KEYS:
            return set(list(combinations)[:1])
    return combinations


def _carried(expr: Expr) -> int | None:
    """The input column whose distinct values ``expr`` keeps distinct."""
    if isinstance(expr, InputRef):
        return expr.index
    if isinstance(expr, Cast) and keeps_distinct(expr.operand.type, expr.type):
        return _carried(expr.operand)
    return None


@reads_watermark.register
def _(node: p.Calc) -> bool:
    parts = (*node.projections, *(() if node.condition is None else (node.condition,)))
    return any(is_current_watermark(x) for part in parts for x in part.walk())


@lineage_of.register
def _(node: p.Calc, lineages: Lineages) -> Lineage:
    below = lineages.of(node.input)
    rows = below.rows
    if node.condition is not None:
        rows = hashed(joined("Filter", [rows, text_of(node.condition, below.columns)]))
    columns: list[str] = []
    carried: list[str] = []
    for expr in node.projections:
        column = column_of(expr, below.columns)
        # Two calls of a non-deterministic expression are two values.
        used_names = () if is_deterministic(expr) else (*below.columns, *columns)
        columns.append(free_name(column, used_names))
        carried.append(below.carried[expr.index] if isinstance(expr, InputRef) else columns[-1])
    texts = lineages.expression_texts(node.projections, node.input)
    return Lineage(rows, tuple(columns), texts, tuple(carried))


@node_name.register
def _(node: p.Calc) -> str:
    return "PythonCalc" if any(isinstance(x, UserCall) for x in node.projections) else "Calc"


@attributes.register
def _(node: p.Calc, form: Form) -> Attributes:
    printer = Printer.over(node.input.fields, form)
    texts = [printer.named(x, f.name) for x, f in zip(node.projections, node.fields, strict=True)]
    where = [] if node.condition is None else [("where", f"[{printer.text(node.condition)}]")]
    return [("select", bracket(texts)), *where]


@own_cost.register
def _(node: p.Calc, rows: tuple[float, ...]) -> Cost:
    kept_rows = rows[0] if node.condition is None else rows[0] * share(node.condition)
    return Cost(kept_rows, kept_rows, rows[0] * sum(map(_computes, node.projections)))


def _computes(expr: Expr) -> bool:
    if isinstance(expr, Cast):
        return not isinstance(expr.operand, Literal)
    return not isinstance(expr, InputRef | Literal)


@runs_otherwise.register
def _(shown: p.Calc, runs: p.PhysicalNode) -> list[str]:
    assert isinstance(runs, p.Calc)
    own = ["behind an exchange, where all rows before each are known"] if reads_watermark(shown) else []
    return [*own, "keeps the values that rows came with"] if keeps_values(runs) else own


@stands_above.register
def _(runs: p.Calc, shown: p.PhysicalNode) -> bool:
    """A join's filter; a projection that another reader of an aggregation needs."""
    return not isinstance(shown, p.Calc)


@note_of_above.register
def _(runs: p.Calc) -> str:
    return "one with the columns of other readers" if runs.condition is None else "Calc above it"
