"""FROM: tables with hints and versions, derived tables, table functions, joins.

Commas and joins come out as sqlglot's flat list of joins, left to right. The right side of a comma
keeps its own joins nested where flattening would change their meaning (RIGHT, FULL, NATURAL, USING).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from tidemill.errors import SqlSyntaxError, ValidationError
from tidemill.sql import expressions as x
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.match_grammar import MatchGrammar
from tidemill.sql.positions import position_of

E = TypeVar("E", bound=exp.Expression)
_SHAPING = ("order", "limit", "offset", "with_", "where", "group", "having", "qualify", "joins", "distinct")
_JOIN_STARTS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")


class RelationGrammar(MatchGrammar):
    def from_clause(self) -> tuple[exp.From, list[exp.Join]]:
        first, joins = self._join_tree()
        while self.at(","):
            token = self.advance()
            right, more = self._join_tree()
            if any(_changes_if_flattened(join) for join in more):
                right.set("joins", more)
                more = []
            joins += [self.place(exp.Join(this=right), token), *more]
        return exp.From(this=first), joins

    def _join_tree(self) -> tuple[exp.Expression, list[exp.Join]]:
        first = self.relation()
        joins = []
        while self.at_any(*_JOIN_STARTS):
            joins.append(self._join())
        return first, joins

    def _join(self) -> exp.Join:
        token = self.current
        method = "NATURAL" if self.take("NATURAL") else None
        side, kind = self._join_kind()
        if self.at("APPLY"):
            self.refuse("APPLY")
        self.expect("JOIN")
        node = exp.Join(this=self.relation(), method=method, side=side, kind=kind)
        if self.take("ON"):
            node.set("on", self.expression())
        elif self.take("USING"):
            node.set("using", self.wrapped(self.identifier))
        return self.place(node, token)

    def _join_kind(self) -> tuple[str | None, str | None]:
        side = self.take_any("LEFT", "RIGHT", "FULL")
        if side:
            if self.at("ASOF"):
                self.refuse("ASOF JOIN")
            self.take("OUTER")
            return side, "OUTER"
        return None, self.take_any("INNER", "CROSS") or None

    def relation(self) -> exp.Expression:
        """One table reference with its alias."""
        token = self.current
        node = self.place(self._relation(), token)
        if self.take("MATCH_RECOGNIZE"):
            node = self.place(self.match_recognize(node), token)
        alias = self._alias()
        if alias is not None:
            node.set("alias", alias)
        if self.at_any("PIVOT", "UNPIVOT", "TABLESAMPLE"):
            self.refuse(self.current.upper)
        return node

    def _relation(self) -> exp.Expression:
        if self.take("LATERAL"):
            return self._lateral()
        if self.at("UNNEST"):
            return self._unnest()
        if self.at("TABLE"):
            return self._table_function(lateral=False)
        if self.at("("):
            return self._parenthesised_relation()
        return self._table()

    def _lateral(self) -> exp.Expression:
        if self.at("TABLE", "("):
            return self._table_function(lateral=True)
        if self.at("UNNEST"):
            return self._unnest()
        if not self.at("("):
            self.fail("TABLE", "(")
        self.advance()
        query = exp.Subquery(this=self.query())
        self.expect(")")
        return exp.Lateral(this=query)

    def _unnest(self) -> exp.Expression:
        self.expect("UNNEST")
        items = self.wrapped(self.expression)
        return exp.Unnest(expressions=items, offset=self.take("WITH", "ORDINALITY"))

    def _table_function(self, *, lateral: bool) -> exp.Expression:
        self.expect("TABLE", "(")
        token = self.current
        if self.at_kind(Kind.WORD) and self.peek().upper == "(":
            name = self.advance().value
        else:
            name = ".".join(self.names())
        call = self.place(exp.Anonymous(this=name, expressions=self.arguments()), token)
        self.expect(")")
        return x.FunctionTable(this=call, lateral=lateral, hints=self.hints())

    def _parenthesised_relation(self) -> exp.Expression:
        """A derived table, or a join tree in parentheses."""
        if self.at_query() and not self._is_join_ahead():
            self.advance()
            query = self.query()
            self.expect(")")
            return _bare_values(query) or exp.Subquery(this=query)
        token = self.current
        self.expect("(")
        node, joins = self._join_tree()
        self.expect(")")
        if not joins:
            raise SqlSyntaxError("Expected query or join", position=token.position)
        if self.at("AS") or self.at_identifier():
            message = "Join expression encountered in illegal context"
            raise SqlSyntaxError(message, position=token.position)
        node.set("joins", [*(node.args.get("joins") or []), *joins])
        return node

    def _is_join_ahead(self) -> bool:
        """``((SELECT ..) AS a JOIN b ..)``: the first parenthesis holds a join tree."""
        if not self.at("(", "("):
            return False
        depth, ahead = 0, 1
        while self.peek(ahead).kind is not Kind.EOF:
            depth += {"(": 1, ")": -1}.get(self.peek(ahead).upper, 0)
            ahead += 1
            if depth == 0:
                break
        after = self.peek(ahead)
        return after.kind is Kind.QUOTED or after.upper in ("AS", *_JOIN_STARTS) or _is_plain(after)

    def _table(self) -> exp.Expression:
        token = self.current
        parts = self.path()
        if self.at("("):
            name = ".".join(part.name for part in parts)
            call = self.place(exp.Anonymous(this=name, expressions=self.arguments()), token)
            return x.FunctionTable(this=call, lateral=False)
        node = self.place(self.table_node(parts), token)
        hints = self.hints()
        if hints:
            node.set("hints", hints)
        version = self._version()
        if version is not None:
            node.set("version", version)
        return node

    def table_node(self, parts: list[exp.Identifier]) -> exp.Table:
        """A Table of one to three parts."""
        if len(parts) > 3:
            name = ".".join(part.name for part in parts)
            raise ValidationError(f"Object '{name}' not found", position=position_of(parts[0]))
        return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))

    def _version(self) -> exp.Version | None:
        token = self.current
        if not self.take("FOR", "SYSTEM_TIME"):
            return None
        if not self.take("AS", "OF"):
            self.fail("AS")
        node = exp.Version(this="SYSTEM_TIME", kind="AS OF", expression=self.expression())
        return self.place(node, token)

    def _alias(self) -> exp.TableAlias | None:
        if self.at("ASOF", "JOIN"):
            self.refuse("ASOF JOIN")
        if not self.take("AS") and not self.at_identifier():
            return None
        token = self.current
        name = self.identifier()
        columns = self.wrapped(self.identifier) if self.at("(") else []
        return self.place(exp.TableAlias(this=name, columns=columns), token)

    def table_argument(self) -> exp.Expression:
        self.expect("TABLE")
        token = self.current
        source = self.place(self.table_node(self.path()), token)
        if hints := self.hints():
            source.set("hints", hints)
        partition = self._keys(self.expression) if self.take("PARTITION", "BY") else []
        order = None
        if self.take("ORDER", "BY"):
            order = exp.Order(expressions=self._keys(self.ordered))
        return x.TableArgument(this=source, partition_by=partition, order=order)

    def _keys(self, key: Callable[[], E]) -> list[E]:
        """A table argument takes one key, or several in parentheses: a comma ends it."""
        return self.wrapped(key) if self.at("(") else [key()]

    def hints(self) -> list[x.FlinkHint]:
        """``/*+ A('k'='v'), B(t) */``, if here."""
        if not self.at_kind(Kind.HINT_START):
            return []
        self.advance()
        hints = self.separated(self._hint)
        self.expect("*/")
        return hints

    def _hint(self) -> x.FlinkHint:
        token = self.current
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            self.fail("<IDENTIFIER>")
        name = self.advance().value.upper()
        items = self.wrapped(self._hint_item) if self.at("(") and self.peek().upper != ")" else []
        if not items and self.take("("):
            self.expect(")")
        options = [item for item in items if isinstance(item, tuple)]
        arguments = [item for item in items if isinstance(item, str)]
        return self.place(x.FlinkHint(this=name, options=options, arguments=arguments), token)

    def _hint_item(self) -> str | tuple[str, str]:
        key = self._hint_word()
        if self.take("="):
            return key, self._hint_word()
        return key

    def _hint_word(self) -> str:
        if self.at_kind(Kind.STRING):
            return self.string()
        if self.at_kind(Kind.NUMBER):
            return self.number()
        return ".".join(self.names())


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
