"""What stands between the parentheses of a table: columns, constraints, watermarks.

Expressions of computed columns and watermarks are parsed, so that errors have their position, and kept
as text, as the catalog keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

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


@dataclass(frozen=True, slots=True)
class TableElements:
    cursor: Cursor
    trees: Trees

    def body(self, *, allow_names: bool = False, placed: bool = False) -> TableBody:
        """``(column, PRIMARY KEY .., WATERMARK .., ...)``."""
        body = TableBody()
        self.cursor.expect("(")
        self.cursor.separated(lambda: self.element(body, allow_names=allow_names, placed=placed))
        self.cursor.expect(")")
        return body

    def element(self, body: TableBody, *, allow_names: bool = False, placed: bool = False) -> None:
        if self.cursor.at("WATERMARK"):
            body.watermarks.append(self._watermark())
        elif self.cursor.at_any("PRIMARY", "CONSTRAINT", "UNIQUE"):
            body.constraints.append(self._table_constraint())
        elif allow_names and self.cursor.at_identifier() and self.cursor.peek().upper in (",", ")"):
            body.names.append(self.cursor.identifier().name)
        else:
            column = self._column(body)
            placement, after = self._placement() if placed else (s.Placement.LAST, ())
            body.columns.append(s.PlacedColumn(column=column, placement=placement, after=after))

    def _placement(self) -> tuple[s.Placement, s.Path]:
        if self.cursor.take("FIRST"):
            return s.Placement.FIRST, ()
        if self.cursor.take("AFTER"):
            return s.Placement.AFTER, self.cursor.names()
        return s.Placement.LAST, ()

    def _column(self, body: TableBody) -> s.ColumnDefinition:
        token = self.cursor.current
        name = self.cursor.identifier().name
        if self.cursor.take("AS"):
            first = self.cursor.current
            self.trees.expression()
            text = self.cursor.text_since(first)
            return s.ComputedColumn(
                name=name, expression=text, position=token.position, comment=clauses.comment(self.cursor)
            )
        first = self.cursor.current
        kind = self.trees.types.nullable_type()
        type_text = self.cursor.text_since(first)
        if self.cursor.take("METADATA"):
            key = self.cursor.string() if self.cursor.take("FROM") else ""
            virtual = self.cursor.take("VIRTUAL")
            return s.MetadataColumn(
                name=name,
                type_text=type_text,
                type=kind,
                position=token.position,
                key=key,
                virtual=virtual,
                comment=clauses.comment(self.cursor),
            )
        self._column_constraint(name, body)
        return s.PhysicalColumn(
            name=name,
            type_text=type_text,
            type=kind,
            position=token.position,
            comment=clauses.comment(self.cursor),
        )

    def _column_constraint(self, column: str, body: TableBody) -> None:
        token = self.cursor.current
        name = self.cursor.identifier().name if self.cursor.take("CONSTRAINT") else ""
        kind = self._constraint_kind()
        if not kind:
            if name:
                self.cursor.fail("PRIMARY", "UNIQUE")
            return
        body.constraints.append(self._constraint(token, kind, (column,), name))

    def _table_constraint(self) -> s.Constraint:
        token = self.cursor.current
        name = self.cursor.identifier().name if self.cursor.take("CONSTRAINT") else ""
        kind = self._constraint_kind() or self.cursor.fail("PRIMARY", "UNIQUE")
        return self._constraint(token, kind, self.cursor.name_list(), name)

    def _constraint_kind(self) -> str:
        if self.cursor.take("PRIMARY"):
            self.cursor.expect("KEY")
            return "PRIMARY KEY"
        return "UNIQUE" if self.cursor.take("UNIQUE") else ""

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
        if self.cursor.take("NOT", "ENFORCED"):
            return False
        return True if self.cursor.take("ENFORCED") else None

    def _watermark(self) -> s.Watermark:
        token = self.cursor.current
        self.cursor.expect("WATERMARK", "FOR")
        column = self.cursor.names()
        self.cursor.expect("AS")
        first = self.cursor.current
        self.trees.expression()
        return s.Watermark(column=column, expression=self.cursor.text_since(first), position=token.position)
