"""ALTER TABLE, VIEW and DATABASE."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tidemill.sql import statements as s
from tidemill.sql.lexer import Token
from tidemill.sql.table_grammar import TableBody, TableGrammar


class AlterGrammar(TableGrammar):
    def alter_table(self, token: Token) -> s.Statement:
        """Behind ALTER TABLE."""
        if_exists = self.take("IF", "EXISTS")
        path = self.names()
        word = self.current.upper
        change = self._CHANGES.get(word)
        if change is None:
            self.fail(*self._CHANGES)
        self.advance()
        return s.AlterTable(
            path=path,
            change=change(self),
            if_exists=if_exists,
            text=self.text_since(token),
            position=token.position,
        )

    def _rename_change(self) -> s.TableChange:
        if self.take("TO"):
            return s.RenameTable(to=self.names())
        column = self.names()
        self.expect("TO")
        return s.RenameColumn(column=column, to=self.identifier().name)

    def _set_change(self) -> s.TableChange:
        return s.SetOptions(options=self.properties())

    def _reset_change(self) -> s.TableChange:
        return s.ResetOptions(keys=() if self.take("(", ")") else self.key_list())

    def _add_change(self) -> s.TableChange:
        if self.at("PARTITION") or self.at("IF", "NOT", "EXISTS", "PARTITION"):
            self.refuse("ALTER TABLE ADD PARTITION")
        if self.at("DISTRIBUTION"):
            self.refuse("ALTER TABLE ADD DISTRIBUTION")
        return self._elements(s.AddSchema)

    def _modify_change(self) -> s.TableChange:
        if self.at("DISTRIBUTION"):
            self.refuse("ALTER TABLE MODIFY DISTRIBUTION")
        return self._elements(s.ModifySchema)

    def _elements(self, change: type[s.AddSchema] | type[s.ModifySchema]) -> s.TableChange:
        if self.at("("):
            body = self.table_body(placed=True)
        else:
            body = TableBody()
            self.table_element(body, placed=True)
        return change(
            columns=tuple(body.columns),
            constraints=tuple(body.constraints),
            watermarks=tuple(body.watermarks),
        )

    def _drop_change(self) -> s.TableChange:
        if self.take("PRIMARY", "KEY"):
            return s.DropConstraint()
        if self.take("CONSTRAINT"):
            return s.DropConstraint(name=self.identifier().name)
        if self.take("WATERMARK"):
            return s.DropWatermark()
        if self.at_any("PARTITION", "DISTRIBUTION") or self.at("IF", "EXISTS", "PARTITION"):
            self.refuse("ALTER TABLE DROP PARTITION or DISTRIBUTION")
        columns = self.wrapped(self.names) if self.at("(") else [self.names()]
        return s.DropColumns(columns=tuple(columns))

    _CHANGES: ClassVar[dict[str, Callable[[AlterGrammar], s.TableChange]]] = {
        "RENAME": _rename_change,
        "SET": _set_change,
        "RESET": _reset_change,
        "ADD": _add_change,
        "MODIFY": _modify_change,
        "DROP": _drop_change,
    }

    def alter_view(self, token: Token) -> s.Statement:
        path = self.names()
        if self.take("RENAME"):
            self.expect("TO")
            rename = self.names()
            return s.AlterView(path=path, rename=rename, text=self.text_since(token), position=token.position)
        self.expect("AS")
        first = self.current
        query = self.query()
        return s.AlterView(
            path=path,
            query=query,
            query_text=self.text_since(first),
            query_position=first.position,
            text=self.text_since(token),
            position=token.position,
        )

    def alter_database(self, token: Token) -> s.Statement:
        path = self.names()
        self.expect("SET")
        options = self.properties()
        return s.AlterDatabase(
            path=path, options=options, text=self.text_since(token), position=token.position
        )
