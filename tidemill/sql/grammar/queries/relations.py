"""FROM: tables with hints and versions, derived tables, table functions, joins.

Commas and joins come out as sqlglot's flat list of joins, left to right. The right side of a comma
keeps its own joins nested where flattening would change their meaning (RIGHT, FULL, NATURAL, USING).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import expressions as x
from tidemill.sql.grammar.cursor import Cursor, at_query, behind_parenthesis
from tidemill.sql.grammar.expressions.calls import Calls
from tidemill.sql.grammar.hints import hints
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.queries.match_recognize import Matching
from tidemill.sql.grammar.tables import named
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.positions import place

_SHAPING = ("order", "limit", "offset", "with_", "where", "group", "having", "qualify", "joins", "distinct")
_MODELS = ("ML_PREDICT", "VECTOR_SEARCH")
"""Flink's table functions that ask a model or an index of vectors."""
_JOIN_STARTS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")


@dataclass(frozen=True, slots=True)
class Relations:
    cursor: Cursor
    nested: Nested
    calls: Calls
    matching: Matching

    def from_clause(self) -> tuple[exp.From, list[exp.Join]]:
        first, joins = self._join_tree()
        while self.cursor.at(","):
            token = self.cursor.advance()
            right, more = self._join_tree()
            if any(_changes_if_flattened(join) for join in more):
                right.set("joins", more)
                more = []
            joins += [place(exp.Join(this=right), token), *more]
        return exp.From(this=first), joins

    def _join_tree(self) -> tuple[exp.Expression, list[exp.Join]]:
        first = self.relation()
        joins = []
        while self.cursor.at_any(*_JOIN_STARTS):
            joins.append(self._join())
        return first, joins

    def _join(self) -> exp.Join:
        token = self.cursor.current
        method = "NATURAL" if self.cursor.take("NATURAL") else None
        side, kind = self._join_kind()
        if self.cursor.at("APPLY"):
            self.cursor.refuse("APPLY")
        self.cursor.expect("JOIN")
        node = exp.Join(this=self.relation(), method=method, side=side, kind=kind)
        if self.cursor.take("ON"):
            node.set("on", self.nested.expression())
        elif self.cursor.take("USING"):
            node.set("using", self.cursor.wrapped(self.cursor.identifier))
        return place(node, token)

    def _join_kind(self) -> tuple[str | None, str]:
        side = self.cursor.take_any("LEFT", "RIGHT", "FULL")
        if side:
            if self.cursor.at("ASOF"):
                self.cursor.refuse("ASOF JOIN")
            self.cursor.take("OUTER")
            return side, "OUTER"
        return None, self.cursor.take_any("INNER", "CROSS") or "INNER"

    def relation(self) -> exp.Expression:
        """One table reference with its alias."""
        token = self.cursor.current
        node = place(self._relation(), token)
        if self.cursor.take("MATCH_RECOGNIZE"):
            node = place(self.matching.match_recognize(node), token)
        alias = self._alias()
        if alias is not None:
            node.set("alias", alias)
        if self.cursor.at_any("PIVOT", "UNPIVOT", "TABLESAMPLE"):
            self.cursor.refuse(self.cursor.current.upper)
        return node

    def _relation(self) -> exp.Expression:
        if self.cursor.take("LATERAL"):
            return self._lateral()
        if self.cursor.at("UNNEST"):
            return self._unnest()
        if self.cursor.at("TABLE"):
            return self._table_function(lateral=False)
        if self.cursor.at("("):
            return self._parenthesised_relation()
        return self._table()

    def _refuse(self, *names: str) -> None:
        """NotSupportedError if one of the functions ``names`` is called, whose arguments have a syntax of
        their own."""
        if self.cursor.current.upper in names and self.cursor.peek().upper == "(":
            self.cursor.refuse(f"The table function {self.cursor.current.upper}")

    def _lateral(self) -> exp.Expression:
        self._refuse(*_MODELS, "SNAPSHOT")
        if self.cursor.at("TABLE", "("):
            return self._table_function(lateral=True)
        if self.cursor.at("UNNEST"):
            return self._unnest()
        if not self.cursor.at("("):
            self.cursor.fail("TABLE", "(")
        self.cursor.advance()
        query = exp.Subquery(this=self.nested.query())
        self.cursor.expect(")")
        return exp.Lateral(this=query)

    def _unnest(self) -> exp.Expression:
        self.cursor.expect("UNNEST")
        items = self.cursor.wrapped(self.nested.expression)
        return exp.Unnest(expressions=items, offset=self.cursor.take("WITH", "ORDINALITY"))

    def _table_function(self, *, lateral: bool) -> exp.Expression:
        self.cursor.expect("TABLE", "(")
        self._refuse(*_MODELS)
        token = self.cursor.current
        if self.cursor.at_kind(Kind.WORD) and self.cursor.peek().upper == "(":
            name = self.cursor.advance().value
        else:
            name = ".".join(self.cursor.names())
        call = place(exp.Anonymous(this=name, expressions=self.calls.arguments()), token)
        self.cursor.expect(")")
        return x.FunctionTable(this=call, lateral=lateral, hints=hints(self.cursor))

    def _parenthesised_relation(self) -> exp.Expression:
        """A derived table, or a join tree in parentheses."""
        if at_query(self.cursor) and not self._is_join_ahead():
            self.cursor.advance()
            query = self.nested.query()
            self.cursor.expect(")")
            return _bare_values(query) or exp.Subquery(this=query)
        token = self.cursor.current
        self.cursor.expect("(")
        node, joins = self._join_tree()
        self.cursor.expect(")")
        if not joins:
            raise SqlSyntaxError("Expected query or join", position=token.position)
        if self.cursor.at("AS") or self.cursor.at_identifier():
            message = "Join expression encountered in illegal context"
            raise SqlSyntaxError(message, position=token.position)
        for join in joins:
            node.append("joins", join)
        return node

    def _is_join_ahead(self) -> bool:
        """``((SELECT ..) AS a JOIN b ..)``: the first parenthesis holds a join tree."""
        if not self.cursor.at("(", "("):
            return False
        after = behind_parenthesis(self.cursor, 1)
        return after.kind is Kind.QUOTED or after.upper in ("AS", *_JOIN_STARTS) or _is_plain(after)

    def _table(self) -> exp.Expression:
        self._refuse(*_MODELS)
        token = self.cursor.current
        parts = self.cursor.path()
        if self.cursor.at("("):
            name = ".".join(part.name for part in parts)
            call = place(exp.Anonymous(this=name, expressions=self.calls.arguments()), token)
            return x.FunctionTable(this=call, lateral=False)
        node = place(named(parts), token)
        if table_hints := hints(self.cursor):
            node.set("hints", table_hints)
        version = self._version()
        if version is not None:
            node.set("version", version)
        return node

    def _version(self) -> exp.Version | None:
        token = self.cursor.current
        if not self.cursor.take("FOR", "SYSTEM_TIME"):
            return None
        if not self.cursor.take("AS", "OF"):
            self.cursor.fail("AS")
        node = exp.Version(this="SYSTEM_TIME", kind="AS OF", expression=self.nested.expression())
        return place(node, token)

    def _alias(self) -> exp.TableAlias | None:
        if self.cursor.at("ASOF", "JOIN"):
            self.cursor.refuse("ASOF JOIN")
        if not self.cursor.take("AS") and not self.cursor.at_identifier():
            return None
        token = self.cursor.current
        name = self.cursor.identifier()
        columns = self.cursor.wrapped(self.cursor.identifier) if self.cursor.at("(") else []
        return place(exp.TableAlias(this=name, columns=columns), token)


def _bare_values(query: exp.Expression) -> exp.Values | None:
    """The Values of a query that is nothing but VALUES."""
    source = query.args.get("from_")
    values = source.this if isinstance(source, exp.From) else None
    if not isinstance(values, exp.Values) or values.alias or not query.is_star:
        return None
    return None if any(query.args.get(slot) for slot in _SHAPING) else values


def _changes_if_flattened(join: exp.Join) -> bool:
    return join.side in ("RIGHT", "FULL") or bool(join.method) or bool(join.args.get("using"))


def _is_plain(token: Token) -> bool:
    """An alias without AS: a word that does not continue a query."""
    words = (")", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "MINUS", "")
    return token.kind is Kind.WORD and token.upper not in words
