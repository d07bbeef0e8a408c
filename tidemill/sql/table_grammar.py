"""CREATE TABLE: columns, constraints, watermarks and the clauses behind them.

Expressions of computed columns and watermarks are parsed, so that errors have their position, and kept
as text, as the catalog keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.lexer import Token
from tidemill.sql.query_grammar import QueryGrammar

_LIKE_VERBS = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_FEATURES = (
    "ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS",
)  # fmt: skip
_NOT_ENFORCED = (
    "Flink doesn't support ENFORCED mode for {kind} constraint. ENFORCED/NOT ENFORCED controls if the "
    "constraint checks are performed on the incoming/outgoing data. Flink does not own the data therefore "
    "the only supported mode is the NOT ENFORCED mode"
)


@dataclass(slots=True)
class TableBody:
    """What stands between the parentheses of CREATE TABLE or ALTER TABLE ADD / MODIFY."""

    columns: list[s.PlacedColumn] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    constraints: list[s.Constraint] = field(default_factory=list)
    watermarks: list[s.Watermark] = field(default_factory=list)


class TableGrammar(QueryGrammar):
    def properties(self) -> s.Options:
        """``('key' = 'value', ...)``, possibly empty."""
        self.expect("(")
        if self.take(")"):
            return ()
        pairs = self.separated(self._property)
        self.expect(")")
        return tuple(pairs)

    def _property(self) -> tuple[str, str]:
        key = self.string()
        self.expect("=")
        return key, self.string()

    def comment(self) -> str:
        return self.string() if self.take("COMMENT") else ""

    def if_not_exists(self) -> bool:
        return self.take("IF", "NOT", "EXISTS")

    def create_table(self, token: Token, *, temporary: bool, replace: bool = False) -> s.CreateTable:
        """Behind CREATE [TEMPORARY] TABLE."""
        if_not_exists = self.if_not_exists()
        path = self.names()
        body = self.table_body(allow_names=True) if self.at("(") else TableBody()
        comment = self.comment()
        if self.at("DISTRIBUTED"):
            self.refuse("DISTRIBUTED BY")
        partitioned_by = self._partitioned_by()
        options = self.properties() if self.take("WITH") else ()
        like = self._like_clause() if self.at("LIKE") else None
        query, query_text = None, ""
        if self.take("AS"):
            first = self.current
            query = self.query()
            query_text = self.text_since(first)
        elif body.names:
            self.fail("AS")
        return s.CreateTable(
            text=self.text_since(token),
            position=token.position,
            path=path,
            columns=tuple(placed.column for placed in body.columns),
            column_names=tuple(body.names),
            constraints=tuple(body.constraints),
            watermarks=tuple(body.watermarks),
            partitioned_by=partitioned_by,
            options=options,
            comment=comment,
            like=like,
            query=query,
            query_text=query_text,
            temporary=temporary,
            if_not_exists=if_not_exists,
            replace=replace,
        )

    def _partitioned_by(self) -> tuple[str, ...]:
        if not self.take("PARTITIONED", "BY"):
            return ()
        if self.take("(", ")"):
            return ()
        return self.name_list()

    def table_body(self, *, allow_names: bool = False, placed: bool = False) -> TableBody:
        """``(column, PRIMARY KEY .., WATERMARK .., ...)``."""
        body = TableBody()
        self.expect("(")
        self.separated(lambda: self.table_element(body, allow_names=allow_names, placed=placed))
        self.expect(")")
        return body

    def table_element(self, body: TableBody, *, allow_names: bool = False, placed: bool = False) -> None:
        if self.at("WATERMARK"):
            body.watermarks.append(self._watermark())
        elif self.at_any("PRIMARY", "CONSTRAINT", "UNIQUE"):
            body.constraints.append(self._table_constraint())
        elif allow_names and self.at_identifier() and self.peek().upper in (",", ")"):
            body.names.append(self.identifier().name)
        else:
            column = self._column(body)
            placement, after = self._placement() if placed else (s.Placement.LAST, ())
            body.columns.append(s.PlacedColumn(column=column, placement=placement, after=after))

    def _placement(self) -> tuple[s.Placement, s.Path]:
        if self.take("FIRST"):
            return s.Placement.FIRST, ()
        if self.take("AFTER"):
            return s.Placement.AFTER, self.names()
        return s.Placement.LAST, ()

    def _column(self, body: TableBody) -> s.ColumnDefinition:
        token = self.current
        name = self.identifier().name
        if self.take("AS"):
            first = self.current
            self.expression()
            text = self.text_since(first)
            return s.ComputedColumn(
                name=name, expression=text, position=token.position, comment=self.comment()
            )
        first = self.current
        kind = self.nullable_type()
        type_text = self.text_since(first)
        if self.take("METADATA"):
            key = self.string() if self.take("FROM") else ""
            virtual = self.take("VIRTUAL")
            return s.MetadataColumn(
                name=name,
                type_text=type_text,
                type=kind,
                position=token.position,
                key=key,
                virtual=virtual,
                comment=self.comment(),
            )
        self._column_constraint(name, body)
        return s.PhysicalColumn(
            name=name, type_text=type_text, type=kind, position=token.position, comment=self.comment()
        )

    def _column_constraint(self, column: str, body: TableBody) -> None:
        token = self.current
        name = self.identifier().name if self.take("CONSTRAINT") else ""
        kind = self._constraint_kind()
        if not kind:
            if name:
                self.fail("PRIMARY", "UNIQUE")
            return
        body.constraints.append(self._constraint(token, kind, (column,), name))

    def _table_constraint(self) -> s.Constraint:
        token = self.current
        name = self.identifier().name if self.take("CONSTRAINT") else ""
        kind = self._constraint_kind() or self.fail("PRIMARY", "UNIQUE")
        return self._constraint(token, kind, self.name_list(), name)

    def _constraint_kind(self) -> str:
        if self.take("PRIMARY"):
            self.expect("KEY")
            return "PRIMARY KEY"
        return "UNIQUE" if self.take("UNIQUE") else ""

    def _constraint(self, token: Token, kind: str, columns: tuple[str, ...], name: str) -> s.Constraint:
        """Flink's parser itself refuses UNIQUE and enforced keys."""
        enforced = self._enforced()
        if kind == "UNIQUE":
            raise SqlSyntaxError("UNIQUE constraint is not supported yet", position=token.position)
        if enforced is not False:
            message = _NOT_ENFORCED.format(kind=kind)
            raise SqlSyntaxError(message, position=token.position, expected=("NOT ENFORCED",))
        return s.Constraint(kind=kind, columns=columns, position=token.position, name=name, enforced=enforced)

    def _enforced(self) -> bool | None:
        if self.take("NOT", "ENFORCED"):
            return False
        return True if self.take("ENFORCED") else None

    def _watermark(self) -> s.Watermark:
        token = self.current
        self.expect("WATERMARK", "FOR")
        column = self.names()
        self.expect("AS")
        first = self.current
        self.expression()
        return s.Watermark(column=column, expression=self.text_since(first), position=token.position)

    def _like_clause(self) -> s.Like:
        token = self.advance()
        source = self.names()
        options: list[tuple[str, str]] = []
        if self.take("("):
            while verb := self.take_any(*_LIKE_VERBS):
                options.append((verb, self.expect_any(*_LIKE_FEATURES)))
            self.expect(")")
        return s.Like(source=source, position=token.position, options=tuple(options))

    def key_list(self) -> tuple[str, ...]:
        """``('a', 'b')``."""
        return tuple(self.wrapped(self.string))

    def rest_of_statement(self) -> None:
        """Moves to the end of a statement that is only named, not understood."""
        while not self.at_end() and self.current.upper != ";":
            self.advance()
