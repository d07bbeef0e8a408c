"""Match -> its kernel, between two projections.

Conditions are residual trees (see ``operators.join.residual``) over columns of rows. What such a tree has no
operation for, of parts that look at one row only, Spark computes below the kernel, as it does the operands of
FIRST, LAST and aggregates. Above it Spark computes the measures from the values that the
kernel picked out of each match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec, Source
from tidemill.operators.aggregates.records import is_simple
from tidemill.operators.aggregates.registry import build as aggregate
from tidemill.operators.join.residual import ColumnTerm, ConstantTerm, Residual, Term
from tidemill.operators.match.by_clock import MatchByClockSpec
from tidemill.operators.match.operator import MatchSpec
from tidemill.operators.match.pattern import Folded, Piece, Reference, Variable
from tidemill.operators.match.skip import Skip
from tidemill.operators.rows.ordering import OrderKey
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.joins.pairwise import known_to_kernels
from tidemill.physical.names import free_name
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.plan.expressions import Call, Cast, Expr, InputRef, Literal
from tidemill.plan.patterns import EVERY, PatternAggregate, PatternColumn, PatternVariable
from tidemill.plan.rewrite import map_down, map_expr
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import sources_of, timed_input
from tidemill.runtime.compile.residual import CONSTANTS, computed
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.spark.expressions import Translator
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_NO_KEYS = Source(keys=(), retracts=False)


@build.register
def _(node: p.Match, context: CompileContext, sequenced: bool) -> g.ExecNode:
    parts, timed = match_parts(node, node.input.fields), needs_watermark(node)
    kept = named_rows(context.state, "match", node, _kept(node, parts))
    if kept.late is not None:
        parts = match_parts(node, node.input.fields, names(kept.fields[0]))
    spec = replace(
        parts.spec,
        late=kept.late,
        sequence=sequenced,
        keeps_time=timed and context.digests.of(node) in context.timed_digests,
    )
    rows = timed_input(node, context, True) if timed else compile_node(node.input, context, True)
    below = _carrying(parts, rows, context)
    hidden = ((SEQUENCE_COLUMN, pa.int64()), *[(WATERMARK_COLUMN, pa.int64())] * timed)
    runs: MatchSpec | MatchByClockSpec = spec if timed else MatchByClockSpec(inner=spec)
    match = g.Keyed(
        columns=names(parts.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        operator=context.add_operator("match", node, runs, rows=kept),
        spec=runs,
        ports=(
            g.Port(
                input=below,
                references=below.columns,
                columns=tuple(name for name, _ in parts.carried),
                keys=spec.keys,
                schema=pa.schema([pa.field(*column) for column in (*spec.columns, *hidden)]),
                timed=timed,
            ),
        ),
        schema=keyed_schema(parts.fields, INSERT_ONLY, sequenced, spec.keeps_time),
        single=not spec.keys,
        partitioned=tuple(frozenset({f.name}) for f in parts.fields[: len(spec.keys)]),
        keeps_time=spec.keeps_time,
        clocked=frozenset() if timed else sources_of(below),
    )
    translator = Translator(columns=match.columns, zone=context.zone)
    return g.Select(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        input=match,
        expressions=tuple(map(translator.sql, parts.outputs)),
        references=tuple(match.columns[x.index] if isinstance(x, InputRef) else None for x in parts.outputs),
    )


def _kept(node: p.Match, parts: MatchParts) -> p.Calc:
    """The rows that the kernel keeps, as a node of the plan would give them."""
    return p.Calc(
        input=node.input,
        fields=tuple(t.Field(name, x.type) for name, x in parts.carried),
        projections=tuple(x for _, x in parts.carried),
        traits=node.input.traits,
    )


def _carrying(parts: MatchParts, below: g.ExecNode, context: CompileContext) -> g.Select:
    """What the kernel's rows are made of, columns by their names in the plan."""
    translator = Translator(columns=below.columns, zone=context.zone)
    columns: list[str] = []
    for number, (_, x) in enumerate(parts.carried):
        name = below.columns[x.index] if isinstance(x, InputRef) else f"c{number}"
        columns.append(free_name(name, columns))
    return g.Select(
        columns=tuple(columns),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=tuple(translator.sql(x) for _, x in parts.carried),
        references=tuple(
            below.columns[x.index] if isinstance(x, InputRef) else None for _, x in parts.carried
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchParts:
    """``carried``: what the kernel's rows are made of, over the input. ``fields``: what the kernel gives;
    ``outputs``: the node's columns over these."""

    carried: tuple[tuple[str, Expr], ...]
    spec: MatchSpec
    fields: tuple[t.Field, ...]
    outputs: tuple[Expr, ...]


def match_parts(
    node: p.Match, inputs: tuple[t.Field, ...], columns_of_rows: tuple[str, ...] = ()
) -> MatchParts:
    """``columns_of_rows``: what the carried columns are called, if they are known."""
    carried = _Carried(columns_of_rows)
    columns = [InputRef(type=inputs[i].type, index=i) for i in node.partition]
    keys = tuple(dict.fromkeys(carried.add(c) for c in columns))
    order = tuple(
        OrderKey(
            name=carried.add(InputRef(type=inputs[k.index].type, index=k.index)),
            ascending=k.ascending,
            nulls_first=k.nulls_first,
        )
        for k in node.order
    )
    conditions = _Pieces(carried, "p")
    found = dict(node.definitions)
    variables = tuple(
        _variable(v, found.get(i), _Conditions(conditions, i)) for i, v in enumerate(node.pattern.variables)
    )
    measures = _Pieces(carried, "m")
    shown = [_picked(m, measures, len(keys)) for m in node.measures]
    key_types = dict(zip((carried.add(c) for c in columns), (c.type for c in columns), strict=True))
    shown_keys = tuple(f"c{i}" for i in range(len(keys)))
    fields = [t.Field(c, key_types[name]) for c, name in zip(shown_keys, keys, strict=True)]
    fields += [t.Field(name, kind) for name, (_, kind) in measures.found.items()]
    after = node.pattern.after
    spec = MatchSpec(
        columns=tuple((name, arrow_type(x.type)) for name, x in carried.columns.items()),
        keys=keys,
        order=order,
        variables=variables,
        conditions=tuple((name, piece) for name, (piece, _) in conditions.found.items()),
        results=tuple((name, arrow_type(kind), piece) for name, (piece, kind) in measures.found.items()),
        skip=Skip(to=after.to, variable=after.variable),
        within=node.pattern.within,
    )
    places = [InputRef(type=c.type, index=keys.index(carried.add(c))) for c in columns]
    return MatchParts(
        carried=tuple(carried.columns.items()), spec=spec, fields=tuple(fields), outputs=(*places, *shown)
    )


@dataclass(slots=True)
class _Carried:
    """Columns of the kernel's rows; equal expressions are one."""

    names: tuple[str, ...] = ()
    columns: dict[str, Expr] = field(default_factory=dict)

    def add(self, expr: Expr) -> str:
        for name, known in self.columns.items():
            if known == expr:
                return name
        number = len(self.columns)
        name = self.names[number] if self.names else f"c{number}"
        self.columns[name] = expr
        return name


@dataclass(slots=True)
class _Pieces:
    """What is looked up in attempts or in matches, by name, with its type."""

    carried: _Carried
    prefix: str
    found: dict[str, tuple[Piece, t.LogicalType]] = field(default_factory=dict)

    def add(self, piece: Piece, kind: t.LogicalType) -> str:
        for name, (known, _) in self.found.items():
            if known == piece:
                return name
        name = f"{self.prefix}{len(self.found)}"
        self.found[name] = (piece, kind)
        return name

    def value(self, expr: Expr) -> str:
        """The piece that a column or an aggregate of a variable is."""
        if isinstance(expr, PatternAggregate):
            return self.add(self._folded(expr), expr.type)
        assert isinstance(expr, PatternColumn)
        return self.reference(expr, expr.operand)

    def reference(self, at: PatternColumn, operand: Expr) -> str:
        """``operand`` of the row that ``at`` is of."""
        absent = ""
        if not isinstance(operand, InputRef):
            absent = self.carried.add(map_expr(operand, _nothing))
        reference = Reference(
            column=self.carried.add(operand),
            variable=at.variable,
            last=at.last,
            offset=at.offset,
            absent=absent,
        )
        return self.add(reference, operand.type.with_nullable(True))

    def _folded(self, expr: PatternAggregate) -> Folded:
        args = tuple(self.carried.add(a) for a in expr.args)
        call = AggregateSpec(
            function=expr.function,
            args=args,
            arg_types=tuple(arrow_type(a.type) for a in expr.args),
            result=arrow_type(expr.type),
            name="",
            options=expr.options,
        )
        if not all(is_simple(a) for a in aggregate(call, _NO_KEYS).accumulators):
            raise NotSupportedError(f"{expr.function} in MATCH_RECOGNIZE is not supported")
        return Folded(call=call, variable=expr.variable)


def _nothing(expr: Expr) -> Expr:
    """A column of a row that is not there."""
    if isinstance(expr, InputRef):
        return Literal(type=expr.type.with_nullable(True), value=None)
    return expr


def _picked(measure: Expr, pieces: _Pieces, keys: int) -> Expr:
    """``measure`` over what the kernel gives."""

    def one(expr: Expr) -> Expr | None:
        if not _is_piece(expr):
            return None
        name = pieces.value(expr)
        return InputRef(type=expr.type, index=keys + list(pieces.found).index(name))

    return map_down(measure, one)


def _is_piece(expr: Expr) -> bool:
    return isinstance(expr, PatternColumn | PatternAggregate)


def _variable(variable: PatternVariable, condition: Expr | None, conditions: _Conditions) -> Variable:
    parts = [] if condition is None else conjuncts(condition)
    plain = [x for x in parts if conditions.of_current_row(x)]
    rest = [x for x in parts if not conditions.of_current_row(x)]
    alone, compared = conjunction(plain), conjunction(rest)
    return Variable(
        name=variable.name,
        least=variable.least,
        most=variable.most,
        greedy=variable.greedy,
        alone=None if alone is None else Residual(conditions.term(alone)),
        condition=None if compared is None else Residual(conditions.term(compared)),
    )


def _plain(expr: Expr) -> Expr:
    """``expr`` over the row that all its columns are of."""
    return map_down(expr, lambda x: x.operand if isinstance(x, PatternColumn) else None)


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The terms of the condition of the variable with number ``own``."""

    pieces: _Pieces
    own: int

    def of_current_row(self, expr: Expr) -> bool:
        rows = self._rows(expr)
        return rows is not None and all(map(self._is_current, rows))

    def _is_current(self, row: PatternColumn) -> bool:
        return row.variable in (self.own, EVERY) and row.last and row.offset == 0

    def _by_kernel(self, expr: Expr) -> bool:
        """Whether the kernel computes ``expr`` from columns as they are: no other column is made for it."""
        if not isinstance(expr, Call | Cast) or not known_to_kernels(expr) or not _alike(expr.children):
            return False
        return all(self._is_at_hand(x) or self._by_kernel(x) for x in expr.children)

    def _is_at_hand(self, expr: Expr) -> bool:
        if isinstance(expr, PatternColumn):
            return isinstance(expr.operand, InputRef)
        return isinstance(expr, Literal) and isinstance(expr.type, CONSTANTS) and expr.value is not None

    def _rows(self, expr: Expr) -> list[PatternColumn] | None:
        """The rows that ``expr`` looks at; None where it aggregates."""
        found = [x for x in expr.walk() if _is_piece(x)]
        rows = [x for x in found if isinstance(x, PatternColumn)]
        return rows if len(rows) == len(found) else None

    def term(self, expr: Expr) -> Term:
        if isinstance(expr, Literal) and isinstance(expr.type, CONSTANTS) and expr.value is not None:
            return ConstantTerm(expr.value, arrow_type(expr.type))
        if isinstance(expr, PatternAggregate):
            return ColumnTerm(self.pieces.value(expr))
        if self._by_kernel(expr):
            return computed(expr, tuple(map(self.term, expr.children)))
        if self.of_current_row(expr):
            return ColumnTerm(self.pieces.carried.add(_plain(expr)))
        rows = self._rows(expr)
        if rows and len({(r.variable, r.last, r.offset) for r in rows}) == 1:
            return ColumnTerm(self.pieces.reference(rows[0], _plain(expr)))
        if not known_to_kernels(expr) or not isinstance(expr, Call | Cast):
            raise _unknown(expr)
        return computed(expr, tuple(map(self.term, expr.children)))


def _alike(operands: Sequence[Expr]) -> bool:
    """Whether operands are of one type: where they are not, Spark is told what Flink makes of that."""
    kinds = [x.type.with_nullable(True) for x in operands]
    families = (t.INTEGER_TYPES, t.CHARACTER_TYPES)
    return len(set(kinds)) == 1 or any(all(isinstance(k, f) for k in kinds) for f in families)


def _unknown(expr: Expr) -> NotSupportedError:
    name = expr.function if isinstance(expr, Call) else f"a {type(expr).__name__} to {expr.type}"
    return NotSupportedError(
        f"A condition of DEFINE that applies {name} to values of several rows at once is not supported",
        hint="Comparisons, logic, CASE, COALESCE, TIMESTAMPDIFF, and +, -, *, ABS work across rows.",
    )
