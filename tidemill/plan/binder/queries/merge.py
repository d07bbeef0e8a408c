"""MERGE INTO, as an INSERT of the rows that change, each with its kind.

``MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a
WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.a)`` hands the sink the rows of ``s LEFT JOIN t``. A CASE over the
clauses gives each column, and another one gives the kind. Each value takes the column's type by itself: in
the common type of all values, DOUBLE say, another clause's DECIMAL would lose digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable, Column
from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, RowKind
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, Handler, QueryBinder
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.queries import insert
from tidemill.plan.binder.queries.row_changes import check_assigned, column_named, table_named
from tidemill.plan.expressions import Expr
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.sql.expressions import Assigned, TypeSpec
from tidemill.sql.positions import position_of
from tidemill.sql.statements import Insert, Merge, MergeClause
from tidemill.types import logical as t

_MATCHED = "$matched"
_VALUE = Clause(name="MERGE INTO")
_KIND = Column(name=KIND_COLUMN, type=t.TinyIntType())
_KIND_TYPE = TypeSpec(this=_KIND.type, written="TINYINT")


def bind_merge(
    binder: QueryBinder, statement: Merge, table: CatalogTable, context: Context, fixed: tuple[str, ...]
) -> n.Sink:
    """ValidationError for columns that the table does not have and for clauses that no row reaches;
    NotSupportedError for ``fixed`` columns that are set, and for clauses whose conditions draw a value."""
    _check_reached(statement.clauses)
    values = [_values(clause, table, fixed) for clause in statement.clauses]
    tests = [_test(clause, statement.alias) for clause in statement.clauses]
    names = [column.name for column in table.written_columns]
    columns = [_case(tests, [v[name] for v in values], _target_column(statement, name)) for name in names]
    kinds: list[exp.Expression] = [_kind(clause) for clause in statement.clauses]
    tree = exp.Select(expressions=[*columns, _case(tests, kinds, exp.Null())], from_=_from(statement))
    tree.set("joins", [_join(statement)])
    tree.set("where", exp.Where(this=exp.or_(*tests, copy=True)))
    insert_statement = Insert(
        target=statement.target,
        target_position=statement.target_position,
        query=tree,
        text=statement.text,
        position=statement.position,
    )
    extended = replace(table, columns=(*table.columns, _KIND))
    sink = insert.bind(binder, insert_statement, context, extended)
    _check_determinism(sink.input, statement)
    deletes = any(clause.action == "DELETE" for clause in statement.clauses)
    kinds_written = INSERT_ONLY | {RowKind.DELETE} if deletes else INSERT_ONLY
    return replace(sink, fields=sink.fields[:-1], table=table, kinds=kinds_written, merges=True)


def _check_reached(clauses: Sequence[MergeClause]) -> None:
    closed: set[bool] = set()
    for clause in clauses:
        if clause.matches in closed:
            raise ValidationError(
                "No row reaches this clause: an earlier one of the same kind has no condition",
                position=clause.position,
            )
        if clause.condition is None:
            closed.add(clause.matches)


def _check_determinism(plan: n.LogicalNode, statement: Merge) -> None:
    """Each CASE asks the conditions anew."""
    if isinstance(plan, n.Project) and not is_deterministic(plan.expressions[-1]):
        raise NotSupportedError(
            "A condition of MERGE INTO that calls a non-deterministic function", position=statement.position
        )


def _values(
    clause: MergeClause, table: CatalogTable, fixed: tuple[str, ...]
) -> dict[str, exp.Expression | None]:
    """By column what the clause writes; None for the value that the target has."""
    written = [column.name for column in table.written_columns]
    if clause.action == "DELETE":
        return dict.fromkeys(written)
    named = [(column.name, column.position) for column in clause.columns]
    if not named:
        named = [(name, clause.position) for name in written]
    if len(named) != len(clause.values):
        raise ValidationError(
            f"INSERT names {len(named)} columns and has {len(clause.values)} values", position=clause.position
        )
    given: dict[str, exp.Expression] = {}
    for (name, position), value in zip(named, clause.values, strict=True):
        check_assigned(name, position, table, given, fixed if clause.action == "UPDATE" else ())
        given[name] = _assigned(value, name, table)
    if clause.action == "UPDATE":
        return {name: given.get(name) for name in written}
    _check_complete(given, table, clause.position)
    return {name: given.get(name, exp.Null()) for name in written}


def _assigned(value: exp.Expression, name: str, table: CatalogTable) -> exp.Expression:
    kind = next(column.type for column in table.written_columns if column.name == name)
    return Assigned(this=value, to=TypeSpec(this=kind, written=str(kind)), name=name)


def _bind_assigned(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    target: t.LogicalType = node.args["to"].logical
    value = binder.narrowed(_VALUE).bind(node.this)
    if not insert.assignable(value.type, target):
        raise ValidationError(
            f"Incompatible types for column '{node.args['name']}': {value.type} is not written to {target}",
            position=position_of(node.this),
            hint="Write CAST(... AS ...) around the value.",
        )
    return coerce(value, target)


def _check_complete(given: dict[str, exp.Expression], table: CatalogTable, position: Position) -> None:
    for column in table.written_columns:
        if column.name not in given and not column.type.nullable:
            raise ValidationError(
                f"Column '{column.name}' has no default value and does not allow NULLs", position=position
            )


def _test(clause: MergeClause, alias: str) -> exp.Expression:
    absent = exp.Is(this=column_named(_MATCHED, alias), expression=exp.Null())
    test: exp.Expression = exp.Not(this=absent) if clause.matches else absent
    if clause.condition is None:
        return test
    return exp.And(this=test, expression=exp.Paren(this=clause.condition.copy()))


def _case(
    tests: Sequence[exp.Expression], values: Sequence[exp.Expression | None], default: exp.Expression
) -> exp.Expression:
    branches = [
        exp.If(this=test.copy(), true=(default if value is None else value).copy())
        for test, value in zip(tests, values, strict=True)
    ]
    return exp.Case(ifs=branches, default=default)


def _kind(clause: MergeClause) -> exp.Expression:
    kind = RowKind.DELETE if clause.action == "DELETE" else RowKind.INSERT
    return exp.Cast(this=exp.Literal(this=str(int(kind)), is_string=False), to=_KIND_TYPE)


def _target_column(statement: Merge, name: str) -> exp.Expression:
    return column_named(name, statement.alias)


def _from(statement: Merge) -> exp.From:
    return exp.From(this=statement.source.copy())


def _join(statement: Merge) -> exp.Join:
    """With the target, each row of which says that it is there."""
    mark = exp.Alias(this=exp.Boolean(this=True), alias=exp.Identifier(this=_MATCHED, quoted=True))
    rows = exp.Select(expressions=[exp.Star(), mark], from_=exp.From(this=table_named(statement.target)))
    alias = exp.TableAlias(this=exp.Identifier(this=statement.alias, quoted=True))
    side = None if all(clause.matches for clause in statement.clauses) else "LEFT"
    return exp.Join(
        this=exp.Subquery(this=rows, alias=alias),
        side=side,
        kind="OUTER" if side else "INNER",
        on=statement.condition.copy(),
    )


HANDLERS: Mapping[type[exp.Expr], Handler] = {Assigned: _bind_assigned}
