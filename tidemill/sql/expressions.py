"""Syntax nodes that Flink's dialect adds to sqlglot's, and what the grammar makes of the rest.

Names, literals and operators are sqlglot's own nodes (Column, Literal, Add, DPipe, EQ, Not, Is, Like,
In, Between, Case, Cast, Array, Map, Tuple for ``ROW(..)`` and ``(a, b)``, Bracket, Dot, Window, Filter,
Subquery, Exists, Any, All). Every function call is ``exp.Anonymous`` with the name as written, also
COUNT, COALESCE or CURRENT_DATE; DISTINCT arguments are one ``exp.Distinct``; units of TIMESTAMPADD and
TIMESTAMPDIFF are ``exp.Var``. EXTRACT, FLOOR/CEIL(x TO unit) and TRIM are sqlglot's Extract, Floor,
Ceil, Trim. The exceptions are below and in the JSON section.

Tables: ``exp.Table`` has ``hints`` (list of FlinkHint) and ``version`` (exp.Version whose expression is
the time of FOR SYSTEM_TIME AS OF). A join tree in parentheses, or the right side of a comma that must
not be flattened, is the left-most relation with its own ``joins``; ``exp.Subquery`` is a derived table.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from tidemill.types.logical import LogicalType


class TypeSpec(exp.Expression):
    """``this`` is the tidemill LogicalType of a CAST or RETURNING; ``written`` its text."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "written": True}

    @property
    def logical(self) -> LogicalType:
        kind = self.args["this"]
        assert isinstance(kind, LogicalType)
        return kind


class Assigned(exp.Expression, exp.Condition):
    """``this`` as INSERT writes it to the column ``name`` of the TypeSpec ``to``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "name": True}


class DateTimeLiteral(exp.Expression, exp.Condition):
    """DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ (``kind``) '...' with the text ``this``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class IntervalLiteral(exp.Expression, exp.Condition):
    """INTERVAL [-]'this' start[(precision)] [TO end[(fraction)]]; units singular and in upper case."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "negative": False,
        "start": True,
        "precision": False,
        "end": False,
        "fraction": False,
    }


class BinaryLiteral(exp.Expression, exp.Condition):
    """x'0aff': ``this`` is the hexadecimal text."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class IsUnknown(exp.Expression, exp.Condition):
    """``this IS UNKNOWN``; the negation is a Not around it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class IsJson(exp.Expression, exp.Condition):
    """``this IS JSON kind`` with kind VALUE, OBJECT, ARRAY or SCALAR."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class MultisetLiteral(exp.Expression, exp.Condition):
    """MULTISET[...]."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False}


class JsonBehavior(exp.Expression):
    """One ON EMPTY / ON ERROR: ``kind`` is NULL, ERROR, DEFAULT, TRUE, FALSE, UNKNOWN, EMPTY ARRAY,
    EMPTY OBJECT; ``this`` the value of DEFAULT."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "this": False}


class JsonValue(exp.Expression, exp.Condition):
    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "path": True,
        "returning": False,
        "on_empty": False,
        "on_error": False,
    }


class JsonQuery(exp.Expression, exp.Condition):
    """``wrapper`` is WITHOUT, CONDITIONAL or UNCONDITIONAL, None if not written."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "path": True,
        "returning": False,
        "wrapper": False,
        "on_empty": False,
        "on_error": False,
    }


class JsonExists(exp.Expression, exp.Condition):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True, "on_error": False}


class JsonObject(exp.Expression, exp.Condition):
    """``expressions`` are exp.JSONKeyValue; ``on_null`` is NULL or ABSENT, None if not written."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": False, "on_null": False}


class JsonArray(exp.Expression, exp.Condition):
    arg_types: ClassVar[dict[str, bool]] = {"expressions": False, "on_null": False}


class JsonObjectAgg(exp.Expression, exp.Condition):
    """``this`` is one exp.JSONKeyValue."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "on_null": False}


class JsonArrayAgg(exp.Expression, exp.Condition):
    arg_types: ClassVar[dict[str, bool]] = {"this": True, "order": False, "on_null": False}


class ArrayQuery(exp.Expression, exp.Condition):
    """ARRAY(query), MAP(query) or MULTISET(query), by ``kind``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "kind": True}


class FlinkHint(exp.Expression):
    """One hint of ``/*+ ... */``: ``this`` is its upper-case name.

    ``options`` are (key, value) texts of OPTIONS('k'='v') or STATE_TTL('t'='1d'), ``arguments`` plain
    names of BROADCAST(t) and the like.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "options": False, "arguments": False}

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.args.get("options") or ())

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(self.args.get("arguments") or ())


class FunctionTable(exp.Expression, exp.UDTF):
    """A table function in FROM: ``this`` is the exp.Anonymous call.

    ``lateral`` is set for LATERAL TABLE(...). Arguments may be TableArgument, Descriptor, expressions
    and exp.Kwarg(this=exp.Var name, expression=any of these). ``alias`` is an exp.TableAlias.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "lateral": False,
        "alias": False,
        "joins": False,
        "hints": False,
    }


class TableArgument(exp.Expression):
    """``TABLE t [PARTITION BY ..] [ORDER BY ..]`` as an argument; ``this`` is exp.Table, or the query that
    stood in place of it: ``(SELECT ..) PARTITION BY ..``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "partition_by": False, "order": False}


class Descriptor(exp.Expression):
    """DESCRIPTOR(a, b): ``expressions`` are exp.Identifier."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}
