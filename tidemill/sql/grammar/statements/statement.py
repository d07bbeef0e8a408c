"""The table of statements by their first words, and the statements that run queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor, at_query
from tidemill.sql.grammar.statements import clauses, settings
from tidemill.sql.grammar.statements.alter import Alters
from tidemill.sql.grammar.statements.create import Creates
from tidemill.sql.grammar.statements.create_table import CreateTables
from tidemill.sql.grammar.statements.drop import drop
from tidemill.sql.grammar.statements.insert import Inserts
from tidemill.sql.grammar.statements.merge import Merges
from tidemill.sql.grammar.statements.row_changes import RowChanges
from tidemill.sql.grammar.statements.savepoints import diff_savepoint
from tidemill.sql.grammar.statements.show import Shows
from tidemill.sql.grammar.statements.table_elements import TableElements
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

_EXPLAIN_DETAILS = (
    "CHANGELOG_MODE",
    "ESTIMATED_COST",
    "EXECUTION_PLAN",
    "JSON_EXECUTION_PLAN",
    "PLAN_ADVICE",
)
_UNSUPPORTED = {
    "ANALYZE": "ANALYZE TABLE",
    "CALL": "CALL",
}


@dataclass(frozen=True, slots=True)
class Statements:
    """One statement; the parts that only some statements need are made when one of these is read."""

    cursor: Cursor
    trees: Trees

    def statement(self) -> s.Statement:
        token = self.cursor.current
        parse = self._FIRST_WORDS.get(token.upper)
        if parse is not None:
            self.cursor.advance()
            return parse(self, token)
        if token.upper in _UNSUPPORTED:
            return self._unsupported(token, _UNSUPPORTED[token.upper])
        if at_query(self.cursor) or token.upper == "(":
            return self._query(token)
        self.cursor.fail("SELECT", "WITH", "VALUES", "TABLE", *self._FIRST_WORDS, *_UNSUPPORTED)

    def _unsupported(self, token: Token, feature: str) -> s.Unsupported:
        """A statement that is only named: its end is the next semicolon."""
        while not self.cursor.at_end() and not self.cursor.at(";"):
            self.cursor.advance()
        return s.Unsupported(feature=feature, text=self.cursor.text_since(token), position=token.position)

    def _inserts(self) -> Inserts:
        return Inserts(self.cursor, self.trees)

    def _row_changes(self) -> RowChanges:
        return RowChanges(self.cursor, self.trees)

    def _elements(self) -> TableElements:
        return TableElements(self.cursor, self.trees)

    def _tables(self) -> CreateTables:
        return CreateTables(self.cursor, self.trees, self._elements())

    def _create(self, token: Token) -> s.Statement:
        return Creates(self.cursor, self.trees, self._tables()).create(token)

    def _replace(self, token: Token) -> s.CreateTable:
        return self._tables().replace_table(token)

    def _alter(self, token: Token) -> s.Statement:
        if self.cursor.take("JOB"):
            return self._alter_job(token)
        return Alters(self.cursor, self.trees, self._elements()).alter(token)

    def _alter_job(self, token: Token) -> s.AlterJob:
        job_id = self.cursor.string()
        as_query = self.cursor.expect_any("AS", "SET") == "AS"
        target = self._inserts().one_or_more() if as_query else None
        options = () if as_query else clauses.properties(self.cursor)
        text = self.cursor.text_since(token)
        return s.AlterJob(job_id=job_id, target=target, options=options, text=text, position=token.position)

    def _shows(self) -> Shows:
        return Shows(self.cursor, self.trees)

    def _query(self, token: Token) -> s.Query:
        tree = self.trees.query()
        return s.Query(tree=tree, text=self.cursor.text_since(token), position=token.position)

    def _execute(self, token: Token) -> s.Statement:
        """EXECUTE STATEMENT SET, EXECUTE INSERT, EXECUTE query."""
        if self.cursor.take("STATEMENT", "SET"):
            self.cursor.expect("BEGIN")
            return self._inserts().members(token)
        if self.cursor.take("PLAN"):
            file = self.cursor.string()
            return s.ExecutePlan(file=file, text=self.cursor.text_since(token), position=token.position)
        if self.cursor.take("INSERT"):
            return self._inserts().insert(token)
        return self._query(token)

    def _compile(self, token: Token) -> s.CompilePlan:
        """``COMPILE PLAN 'file' [IF NOT EXISTS] FOR ...``, ``COMPILE AND EXECUTE PLAN 'file' FOR ...``."""
        execute = self.cursor.take("AND", "EXECUTE")
        self.cursor.expect("PLAN")
        file = self.cursor.string()
        if not self.cursor.at_any("FOR", "IF"):
            self.cursor.fail("FOR", "IF")
        unless = not execute and self.cursor.take("IF", "NOT", "EXISTS")
        self.cursor.expect("FOR")
        first = self.cursor.current
        target: s.Insert | s.StatementSet
        if self.cursor.expect_any("INSERT", "STATEMENT", "UPSERT") == "STATEMENT":
            self.cursor.expect("SET", "BEGIN")
            target = self._inserts().members(first)
        elif first.upper == "UPSERT":
            self.cursor.refuse("UPSERT INTO", first)
        else:
            target = self._inserts().insert(first)
        return s.CompilePlan(
            file=file,
            target=target,
            if_not_exists=unless,
            execute=execute,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _begin(self, token: Token) -> s.Statement:
        """``BEGIN STATEMENT SET; ... END``."""
        self.cursor.expect("STATEMENT", "SET", ";")
        return self._inserts().members(token)

    def _explain(self, token: Token) -> s.Statement:
        details: list[str] = []
        state = ""
        if self.cursor.take("PLAN"):
            self.cursor.expect("FOR")
        elif self.cursor.take("EVOLUTION"):
            self.cursor.expect("FROM")
            state = self.cursor.string()
        elif self.cursor.at_any(*_EXPLAIN_DETAILS):
            details = self.cursor.separated(lambda: self.cursor.expect_any(*_EXPLAIN_DETAILS))
            if len(set(details)) < len(details):
                raise SqlSyntaxError("Duplicate EXPLAIN DETAIL is not allowed.", position=token.position)
        target = self._explained()
        return s.Explain(
            target=target,
            details=tuple(details),
            state=state,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _explained(self) -> s.Query | s.Insert | s.StatementSet | s.CreateTable | s.Unsupported:
        executed, first = self.cursor.take("EXECUTE"), self.cursor.current
        if self.cursor.take("STATEMENT", "SET", "BEGIN"):
            return self._inserts().members(first)
        if self.cursor.take("INSERT"):
            return self._inserts().insert(first)
        if executed:
            return self._query(first)
        if self.cursor.take("CREATE"):
            return self._explained_create(first)
        if self.cursor.take("REPLACE"):
            return self._replace(first)
        if first.upper in _UNSUPPORTED:
            return self._unsupported(first, f"EXPLAIN {first.upper}")
        return self._query(first)

    def _explained_create(self, first: Token) -> s.CreateTable:
        create = self._create(first)
        if not isinstance(create, s.CreateTable) or create.query is None:
            raise SqlSyntaxError(
                "Unsupported CREATE OR REPLACE statement for EXPLAIN. The statement must define a query "
                "using the AS clause (i.e. CTAS/RTAS statements).",
                position=first.position,
            )
        return create

    _FIRST_WORDS: ClassVar[dict[str, Callable[[Statements, Token], s.Statement]]] = {
        "INSERT": lambda self, token: self._inserts().insert(token),
        "EXECUTE": _execute,
        "BEGIN": _begin,
        "COMPILE": _compile,
        "EXPLAIN": _explain,
        "SET": lambda self, token: settings.set_option(self.cursor, token),
        "RESET": lambda self, token: settings.reset_option(self.cursor, token),
        "ADD": lambda self, token: settings.add_jar(self.cursor, token),
        "REMOVE": lambda self, token: settings.remove_jar(self.cursor, token),
        "VERIFY": lambda self, token: settings.verify_job(self.cursor, token),
        "STOP": lambda self, token: settings.stop_job(self.cursor, token),
        "LOAD": lambda self, token: settings.load_module(self.cursor, token),
        "UNLOAD": lambda self, token: settings.unload_module(self.cursor, token),
        "CREATE": _create,
        "REPLACE": _replace,
        "DROP": lambda self, token: drop(self.cursor, token),
        "TRUNCATE": lambda self, token: self._row_changes().truncate(token),
        "DELETE": lambda self, token: self._row_changes().delete(token),
        "UPDATE": lambda self, token: self._row_changes().update(token),
        "MERGE": lambda self, token: Merges(self.cursor, self.trees).merge(token),
        "ALTER": _alter,
        "DIFF": lambda self, token: diff_savepoint(self.cursor, token),
        "USE": lambda self, token: settings.use(self.cursor, token),
        "SHOW": lambda self, token: self._shows().show(token),
        "DESCRIBE": lambda self, token: self._shows().describe(token),
        "DESC": lambda self, token: self._shows().describe(token),
    }
