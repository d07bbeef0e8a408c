"""FROM t MATCH_RECOGNIZE (...): its input, its pattern, and expressions over the rows of variables.

The scope has one copy of the input's columns per pattern variable, and a last copy for columns without a
variable. The binder binds DEFINE and MEASURES over these copies. Then it replaces each column with the value
in one row of the column's variable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.operators.match.skip import SkipTo
from tidemill.plan import nodes as n
from tidemill.plan.binder.columns import Columns
from tidemill.plan.binder.context import BoundQuery, Context, is_streaming
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, Handler, QueryBinder
from tidemill.plan.binder.expressions.literals import whole_number
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.queries.ordering import direction
from tidemill.plan.binder.queries.pending import AggregateExpr
from tidemill.plan.binder.relations import pattern_text
from tidemill.plan.binder.relations.tables import Source, bind_derived, bind_table, named_source
from tidemill.plan.binder.scope import Relation, Scope, nearest
from tidemill.plan.expressions import Expr, InputRef, Literal, OuterRef, SortKey, UserCall
from tidemill.plan.nodes import Exists, InSubquery, ScalarSubquery
from tidemill.plan.patterns import (
    EVERY,
    AfterMatch,
    Pattern,
    PatternAggregate,
    PatternColumn,
    PatternVariable,
)
from tidemill.plan.rewrite import map_down, move_inputs
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

_MEASURES = Clause(name="MEASURES", aggregates=True)
_DEFINE = Clause(name="DEFINE", aggregates=True)
_OPERAND = Clause(name="FIRST or LAST")
_WITHIN = Clause(name="WITHIN")
_ENDS = {"FIRST": False, "LAST": True}
_PHYSICAL = ("PREV", "NEXT")


def bind(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    source = _input(binder, node.this, context)
    names, fields = source.scope.names(), source.plan.fields
    rows = node.args.get("rows")
    if rows is not None and rows.name.startswith("ALL"):
        raise NotSupportedError("All rows per match mode is not supported yet.", position=position_of(node))
    variables = pattern_text.variables(node.args["pattern"].name, position_of(node))
    pattern = Pattern(
        variables=variables,
        after=_after(node, variables),
        within=_within(binder, node.args.get("within"), context),
    )
    partition = tuple(_column(x, names) for x in node.args.get("partition_by") or ())
    order = _order(node, names, fields, context)
    rows_of = _VariableRows(binder, context, pattern, fields, tuple(names), order[0].index)
    measures = [(x.alias, rows_of.bind(x.this, _MEASURES)) for x in node.args.get("measures") or ()]
    bound = {d.alias: rows_of.definition(d) for d in node.args.get("define") or ()}
    definitions = tuple((i, bound[v.name]) for i, v in enumerate(variables) if v.name in bound)
    columns = Columns()
    for index in partition:
        columns.append(InputRef(type=fields[index].type, index=index), names[index])
    for name, value in measures:
        columns.append(value, name)
    match = n.MatchRecognize(
        fields=tuple(columns.fields),
        input=source.plan,
        partition=partition,
        order=order,
        pattern=pattern,
        definitions=definitions,
        measures=tuple(value for _, value in measures),
    )
    output_names = (*(names[index] for index in partition), *(name for name, _ in measures))
    query = with_column_names(BoundQuery(plan=match, names=output_names), column_aliases(node), node)
    return named_source(query, context.alias(node))


def _input(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    if isinstance(node, exp.Table):
        return bind_table(binder, node, context)
    if isinstance(node, exp.Subquery):
        return bind_derived(binder, node, context)
    raise NotSupportedError(
        "MATCH_RECOGNIZE reads a table, a view or a sub-query",
        position=position_of(node),
        hint="Write FROM (SELECT * FROM ...) MATCH_RECOGNIZE (...).",
    )


def _column(node: exp.Expr, names: list[str]) -> int:
    if not isinstance(node, exp.Column) or node.name not in names:
        raise ValidationError(
            f"Column '{node.name or node}' not found in any table",
            position=position_of(node),
            hint=nearest(node.name, names),
        )
    return names.index(node.name)


def _order(
    node: exp.Expr, names: list[str], fields: tuple[t.Field, ...], context: Context
) -> tuple[SortKey, ...]:
    clause = node.args.get("order")
    keys = []
    for item in clause.expressions if clause is not None else ():
        ascending, nulls_first = direction(item)
        keys.append(SortKey(index=_column(item.this, names), ascending=ascending, nulls_first=nulls_first))
    kind = fields[keys[0].index].type if keys else None
    attribute = "" if kind is None else kind.time_attribute
    timely = bool(attribute) if is_streaming(context) else isinstance(kind, t.TIMESTAMP_TYPES)
    if not timely:
        raise ValidationError(
            "You must specify either rowtime or proctime for order by.", position=position_of(node)
        )
    if not keys[0].ascending:
        raise ValidationError(
            "Primary sort order of a streaming table must be ascending on time.", position=position_of(node)
        )
    return tuple(keys)


def _after(node: exp.Expr, variables: tuple[PatternVariable, ...]) -> AfterMatch:
    """AFTER MATCH as written. The default is SKIP TO NEXT ROW, as in Flink's plans."""
    clause = node.args.get("after")
    words = clause.name.split()[2:] if clause is not None else ["SKIP", "TO", "NEXT", "ROW"]
    upper = [word.upper() for word in words]
    if upper[1] == "PAST":
        return AfterMatch(to=SkipTo.PAST_LAST_ROW)
    if upper[2:] == ["NEXT", "ROW"]:
        return AfterMatch(to=SkipTo.NEXT_ROW)
    first = len(words) == 4 and upper[2] == "FIRST"
    names = [v.name for v in variables]
    name = words[-1].strip("`")
    if name not in names:
        raise ValidationError(
            f"Unknown pattern '{name}'", position=position_of(node), hint=nearest(name, names)
        )
    return AfterMatch(to=SkipTo.FIRST if first else SkipTo.LAST, variable=names.index(name))


def _within(binder: QueryBinder, node: exp.Expr | None, context: Context) -> int | None:
    if node is None:
        return None
    bound = binder.expressions(context, Scope(), _WITHIN).bind(node)
    if isinstance(bound, Literal) and isinstance(bound.type, t.DayTimeIntervalType):
        assert isinstance(bound.value, int)
        if bound.value > 0:
            return bound.value
    raise ValidationError(
        "Only constant intervals with millisecond resolution are supported as time constraints of patterns.",
        position=position_of(node),
        hint="Write WITHIN INTERVAL '10' MINUTE; it must be positive, and months have no fixed length.",
    )


@dataclass(frozen=True, slots=True)
class _VariableRows:
    """Binds the expressions of DEFINE and MEASURES. ``time``: the first column of ORDER BY. ``matched``: the
    expressions see whole matches, in which each variable has its minimum of rows."""

    queries: QueryBinder
    context: Context
    pattern: Pattern
    fields: tuple[t.Field, ...]
    names: tuple[str, ...]
    time: int
    matched: bool = False

    def definition(self, node: exp.Expr) -> Expr:
        variable_names = [v.name for v in self.pattern.variables]
        if node.alias not in variable_names:
            raise ValidationError(
                f"Unknown pattern '{node.alias}'",
                position=position_of(node),
                hint=nearest(node.alias, variable_names),
            )
        bound = self.bind(node.this, _DEFINE)
        if not isinstance(bound.type, t.BooleanType):
            raise ValidationError("DEFINE clause must be a condition", position=position_of(node))
        return bound

    def bind(self, node: exp.Expr, clause: Clause) -> Expr:
        rows = replace(self, matched=clause is _MEASURES)
        return rows._over_variable_rows(rows._binder(clause).bind(node), position_of(node))

    def _binder(self, clause: Clause) -> ExpressionBinder:
        """A binder over one copy of the row per variable, and one copy for all variables."""
        width = len(self.fields)
        visible = tuple(t.Field(name, f.type) for name, f in zip(self.names, self.fields, strict=True))
        relations = tuple(
            Relation(alias=v.name, fields=visible, offset=i * width)
            for i, v in enumerate(self.pattern.variables)
        )
        every = len(relations) * width
        merged = tuple((f.name, InputRef(type=f.type, index=every + i)) for i, f in enumerate(visible))
        binder = self.queries.expressions(self.context, Scope(relations=relations, merged=merged), clause)
        return replace(binder, handlers=self._handlers(binder.handlers))

    def _handlers(self, handlers: Mapping[type[exp.Expr], Handler]) -> Mapping[type[exp.Expr], Handler]:
        plain = handlers[exp.Anonymous]

        def call(binder: ExpressionBinder, node: exp.Expr) -> Expr:
            name = str(node.this).upper()
            if name in _ENDS:
                return self._navigation(binder, name, node)
            if name == "MATCH_ROWTIME":
                return self._rowtime(node)
            if name == "MATCH_PROCTIME":
                return binder.call("PROCTIME", (), node)
            if name in _PHYSICAL:
                raise NotSupportedError(
                    f"{name} in MATCH_RECOGNIZE is not supported", position=position_of(node)
                )
            return plain(binder, node)

        return {**handlers, exp.Anonymous: call}

    def _navigation(self, binder: ExpressionBinder, name: str, node: exp.Expr) -> Expr:
        """FIRST(value [, offset]) and LAST(value [, offset])."""
        position = position_of(node)
        if not 1 <= len(node.expressions) <= 2:
            raise ValidationError(
                f"Invalid number of arguments to function '{name}'. Was expecting 1 or 2 arguments",
                position=position,
            )
        operand = binder.narrowed(_OPERAND).bind(node.expressions[0])
        offset: int | None = 0
        if len(node.expressions) == 2:
            offset = whole_number(binder.narrowed(_OPERAND).bind(node.expressions[1]))
        if offset is None or offset < 0:
            raise ValidationError(
                f"The offset of {name} must be a constant number of rows", position=position
            )
        variable, own = self._one_variable((operand,), position)
        return self._value(own[0], variable, last=_ENDS[name], offset=offset)

    def _rowtime(self, node: exp.Expr) -> Expr:
        """The time of the match's last row. It is NOT NULL, because rows without a time match nothing."""
        kind = self.fields[self.time].type.with_nullable(False)
        if kind.time_attribute != "ROWTIME" and is_streaming(self.context):
            raise ValidationError("MATCH_ROWTIME needs an ORDER BY of event time", position=position_of(node))
        operand = InputRef(type=kind, index=self.time)
        return PatternColumn(type=kind, operand=operand, variable=EVERY, name="*")

    def _value(
        self, operand: Expr, variable: int, *, last: bool = True, offset: int = 0, plain: bool = False
    ) -> PatternColumn:
        must = variable == EVERY or self.pattern.variables[variable].least > offset
        always = self.matched and must and (offset == 0 or variable != EVERY)
        return PatternColumn(
            type=operand.type if always else operand.type.with_nullable(True),
            operand=operand,
            variable=variable,
            name=self.pattern.name(variable),
            last=last,
            offset=offset,
            plain=plain,
        )

    def _over_variable_rows(self, expr: Expr, position: Position | None) -> Expr:
        """Replaces columns and aggregates with values of a variable's rows."""

        def one(part: Expr) -> Expr | None:
            if isinstance(part, PatternColumn):
                return part
            if isinstance(part, AggregateExpr):
                return self._aggregate(part, position)
            if isinstance(part, InputRef):
                variable, own = self._one_variable((part,), position)
                return self._value(own[0], variable, plain=True)
            if isinstance(part, _REFUSED):
                raise NotSupportedError(
                    "A sub-query or a user's function in MATCH_RECOGNIZE is not supported",
                    position=position,
                    hint="Compute it in a sub-query before MATCH_RECOGNIZE, or on its result.",
                )
            return None

        return map_down(expr, one)

    def _aggregate(self, call: AggregateExpr, position: Position | None) -> PatternAggregate:
        if call.distinct or call.filter is not None or call.user is not None:
            raise NotSupportedError(
                "DISTINCT, FILTER and user-defined aggregate functions in MATCH_RECOGNIZE are not supported",
                position=position,
            )
        variable, args = self._one_variable(call.args, position)
        return PatternAggregate(
            type=call.type,
            function=call.function,
            args=args,
            variable=variable,
            name=self.pattern.name(variable),
            options=call.options,
        )

    def _one_variable(
        self, exprs: tuple[Expr, ...], position: Position | None
    ) -> tuple[int, tuple[Expr, ...]]:
        """The only variable that ``exprs`` read, and ``exprs`` over the input's columns."""
        width, count = len(self.fields), len(self.pattern.variables)
        parts = [x for e in exprs for x in e.walk()]
        if any(isinstance(x, (PatternColumn, AggregateExpr)) for x in parts):
            raise ValidationError("FIRST, LAST and aggregates cannot be nested", position=position)
        if any(isinstance(x, _REFUSED) for x in parts):
            raise NotSupportedError(
                "A sub-query or a user's function in MATCH_RECOGNIZE is not supported", position=position
            )
        copies = {x.index // width for x in parts if isinstance(x, InputRef)}
        if len(copies) > 1:
            raise ValidationError(
                "Aggregates, FIRST and LAST must refer to the rows of one pattern variable", position=position
            )
        copy = next(iter(copies), count)
        moved = tuple(move_inputs(e, lambda index: index % width) for e in exprs)
        return (EVERY if copy == count else copy), moved


_REFUSED = (ScalarSubquery, Exists, InSubquery, UserCall, OuterRef)
