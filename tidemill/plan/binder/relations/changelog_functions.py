"""TO_CHANGELOG and FROM_CHANGELOG: from a changelog to insert-only rows with a change code, and back.

``op`` names the column of the codes. ``op_mapping`` is a constant MAP: TO_CHANGELOG maps changes to codes,
FROM_CHANGELOG codes to changes. A key may list several changes or codes, separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from sqlglot import exp

from tidemill.changelog.rowkind import RowKind
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.naming import column_aliases, with_column_names
from tidemill.plan.binder.relations.built_in import BuiltIn
from tidemill.plan.binder.relations.tables import Source, bind_table, named_source
from tidemill.plan.binder.scope import Scope, unique_name
from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.sql.expressions import Descriptor, TableArgument
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

_NAMES = ("TO_CHANGELOG", "FROM_CHANGELOG")
_PARAMETERS = ("INPUT", "OP", "OP_MAPPING")
_NAMED = (*_PARAMETERS, "ON_TIME", "UID")
T = TypeVar("T")
_ARGUMENT = Clause(name="table function")
_DEFAULT_OP = "op"
_KINDS = {kind.name: kind for kind in RowKind}


def bind(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    call = node.this
    arguments = _arguments(call)
    source = _input(binder, arguments["INPUT"], call, context)
    mapping = _mapping(binder, arguments.get("OP_MAPPING"), context)
    changelog_call = n.ChangelogCall(
        op=_op(arguments.get("OP")), mapping=mapping, uid=_uid(arguments.get("UID"))
    )
    make = _to_changelog if str(call.this).upper() == "TO_CHANGELOG" else _from_changelog
    query = make(source, changelog_call, position_of(call))
    return named_source(with_column_names(query, column_aliases(node), node), context.alias(node))


def _arguments(call: exp.Expr) -> dict[str, exp.Expr]:
    arguments: dict[str, exp.Expr] = {}
    for index, node in enumerate(call.expressions):
        named = isinstance(node, exp.Kwarg)
        name = node.this.name.upper() if named else _PARAMETERS[index] if index < len(_PARAMETERS) else ""
        if name not in _NAMED or name in arguments:
            raise _mismatch(call)
        arguments[name] = node.expression if named else node
    if "INPUT" not in arguments:
        raise _mismatch(call)
    if "ON_TIME" in arguments:
        raise NotSupportedError(
            f"The argument 'on_time' of {str(call.this).upper()} is not supported", position=position_of(call)
        )
    return arguments


def _mismatch(call: exp.Expr) -> ValidationError:
    name = str(call.this).upper()
    return ValidationError(
        f"Supported form(s): {name}(input => TABLE t [, op => DESCRIPTOR(column)] [, op_mapping => MAP[...]]"
        " [, uid => '...'])",
        position=position_of(call),
        expected=("input", "op", "op_mapping", "uid"),
    )


def _input(binder: QueryBinder, node: exp.Expr, call: exp.Expr, context: Context) -> BoundQuery:
    if isinstance(node, exp.Subquery):
        return binder.bind(node.this, context)
    if not isinstance(node, TableArgument):
        raise _mismatch(call)
    if node.args.get("partition_by") or node.args.get("order"):
        raise ValidationError(
            "Only tables with set semantics may be partitioned. Invalid PARTITION BY clause in the 0-th "
            f"operand of table function '{str(call.this).upper()}'",
            position=position_of(node),
        )
    if not isinstance(node.this, exp.Table):
        return binder.bind(node.this, context)
    source = bind_table(binder, node.this, context)
    return BoundQuery(plan=source.plan, names=tuple(source.scope.names()))


def _op(node: exp.Expr | None) -> str:
    if node is None:
        return ""
    if not isinstance(node, Descriptor):
        raise ValidationError("The argument 'op' must be a DESCRIPTOR(column)", position=position_of(node))
    if len(node.expressions) != 1:
        raise ValidationError(
            "The descriptor for argument 'op' must contain exactly one column name.",
            position=position_of(node),
        )
    return str(node.expressions[0].name)


def _uid(node: exp.Expr | None) -> str:
    if node is None:
        return ""
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise ValidationError("The argument 'uid' must be a constant text", position=position_of(node))
    return str(node.this)


def _mapping(binder: QueryBinder, node: exp.Expr | None, context: Context) -> Expr | None:
    """The constant MAP; None if the argument is missing or NULL."""
    if node is None:
        return None
    bound = binder.expressions(context, Scope(), _ARGUMENT).bind(node)
    if isinstance(bound, Cast | Literal) and _is_null(bound):
        return None
    if not isinstance(bound, Call) or bound.function != "MAP" or not all(map(_is_text, bound.args)):
        raise ValidationError(
            "The 'op_mapping' argument must be a constant MAP literal.", position=position_of(node)
        )
    return bound


def _is_null(expr: Expr) -> bool:
    while isinstance(expr, Cast):
        expr = expr.operand
    return isinstance(expr, Literal) and expr.value is None


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and isinstance(expr.value, str)


def _entries(mapping: Expr) -> Mapping[str, str]:
    assert isinstance(mapping, Call)
    texts = [str(x.value) for x in mapping.args if isinstance(x, Literal)]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _kind(name: str, position: Position | None) -> RowKind:
    if name not in _KINDS:
        raise _wrong_mapping(
            f"Unknown change operation: '{name}'. Valid values are: [{', '.join(sorted(_KINDS))}].", position
        )
    return _KINDS[name]


def _wrong_mapping(cause: str, position: Position | None) -> ValidationError:
    return ValidationError(f"Invalid target mapping for argument 'op_mapping'. {cause}", position=position)


def _to_changelog(source: BoundQuery, call: n.ChangelogCall, position: Position | None) -> BoundQuery:
    op = call.op or _DEFAULT_OP
    if op in source.names:
        raise ValidationError(f"Field names must be unique. Found duplicates: [{op}]", position=position)
    fields = _plain(source.plan.fields)
    name = unique_name(op, {f.name for f in fields})
    plan = n.ToChangelog(
        fields=(t.Field(name, t.STRING), *fields),
        input=source.plan,
        codes=_codes(call.mapping, position),
        call=call,
    )
    return BoundQuery(plan=plan, names=(op, *source.names))


def _codes(mapping: Expr | None, position: Position | None) -> tuple[tuple[RowKind, str], ...]:
    if mapping is None:
        return tuple((kind, kind.name) for kind in RowKind)
    code_by_kind: dict[RowKind, str] = {}
    for names, code in _entries(mapping).items():
        for kind in (_kind(name, position) for name in _split_list(names)):
            if kind in code_by_kind:
                raise _wrong_mapping(f"Duplicate change operation: '{kind.name}'.", position)
            code_by_kind[kind] = code
    return tuple(code_by_kind.items())


def _from_changelog(source: BoundQuery, call: n.ChangelogCall, position: Position | None) -> BoundQuery:
    op_index = _op_index(source, call.op or _DEFAULT_OP, position)
    fields = _plain(source.plan.fields)
    plan = n.FromChangelog(
        fields=_without(fields, op_index),
        input=source.plan,
        op=op_index,
        codes=_changes(call.mapping, position),
        call=call,
    )
    return BoundQuery(plan=plan, names=_without(source.names, op_index))


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])


def _op_index(source: BoundQuery, op: str, position: Position | None) -> int:
    if op not in source.names:
        raise ValidationError(
            f"The op column '{op}' does not exist in the input schema.",
            position=position,
            expected=source.names,
        )
    op_index = source.names.index(op)
    kind = source.plan.fields[op_index].type
    if not isinstance(kind, t.CHARACTER_TYPES):
        raise ValidationError(
            f"The op column '{op}' must be of STRING type, but was '{kind}'.", position=position
        )
    return op_index


def _changes(mapping: Expr | None, position: Position | None) -> tuple[tuple[str, RowKind], ...]:
    if mapping is None:
        return tuple((kind.name, kind) for kind in RowKind)
    entries = _entries(mapping)
    kinds = [_kind(name, position) for name in entries.values()]
    _check_once(kinds, position)
    if RowKind.UPDATE_AFTER in kinds and RowKind.UPDATE_BEFORE not in kinds:
        raise ValidationError(
            "The 'op_mapping' must include UPDATE_BEFORE for retract mode. Upsert mode (without "
            "UPDATE_BEFORE) is not supported in this version.",
            position=position,
        )
    kind_by_code: dict[str, RowKind] = {}
    for codes, kind in zip(entries, kinds, strict=True):
        for code in _split_list(codes):
            if code in kind_by_code:
                raise _wrong_mapping(f"Duplicate code: '{code}'.", position)
            kind_by_code[code] = kind
    return tuple(kind_by_code.items())


def _check_once(kinds: list[RowKind], position: Position | None) -> None:
    twice = next((k for k in kinds if kinds.count(k) > 1), None)
    if twice is not None:
        raise _wrong_mapping(
            f"Duplicate change operation: '{twice.name}'. Use comma-separated keys to map multiple codes to "
            "the same operation (e.g., MAP['c, r', 'INSERT']).",
            position,
        )


def _plain(fields: Iterable[t.Field]) -> tuple[t.Field, ...]:
    """The fields without time attributes: no watermark covers the output."""
    return tuple(t.Field(f.name, t.without_attribute(f.type)) for f in fields)


BUILT_IN = BuiltIn(names=lambda: _NAMES, bind=bind)
