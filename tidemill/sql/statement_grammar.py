"""Which statement a text is: the table of first words, and the statements that run queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

from tidemill.sql import statements as s
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.show_grammar import ShowGrammar

_EXPLAIN_DETAILS = (
    "CHANGELOG_MODE",
    "ESTIMATED_COST",
    "EXECUTION_PLAN",
    "JSON_EXECUTION_PLAN",
    "PLAN_ADVICE",
)
_CONFLICTS = ("NOTHING", "ERROR", "DEDUPLICATE")
_UNSUPPORTED = {
    "DELETE": "DELETE",
    "UPDATE": "UPDATE",
    "MERGE": "MERGE",
    "TRUNCATE": "TRUNCATE TABLE",
    "ANALYZE": "ANALYZE TABLE",
    "CALL": "CALL",
    "LOAD": "LOAD MODULE",
    "UNLOAD": "UNLOAD MODULE",
    "COMPILE": "COMPILE PLAN",
}


class StatementGrammar(ShowGrammar):
    def statement(self) -> s.Statement:
        token = self.current
        parse = self._STATEMENTS.get(token.upper)
        if parse is not None:
            self.advance()
            return parse(self, token)
        if token.upper in _UNSUPPORTED:
            return self._unsupported(token, _UNSUPPORTED[token.upper])
        if self.at_query() or token.upper == "(":
            return self._query_statement(token)
        self.fail("SELECT", "WITH", "VALUES", "TABLE", *self._STATEMENTS, *_UNSUPPORTED)

    def _unsupported(self, token: Token, feature: str) -> s.Unsupported:
        self.rest_of_statement()
        return s.Unsupported(feature=feature, text=self.text_since(token), position=token.position)

    def _query_statement(self, token: Token) -> s.Query:
        tree = self.query()
        return s.Query(tree=tree, text=self.text_since(token), position=token.position)

    def _insert(self, token: Token) -> s.Insert:
        overwrite = self.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
        place = self.current
        target = self.names()
        hints = self._target_options()
        partition = self._partition()
        columns = self.name_list() if self.at("(") and not self.at_query() else ()
        partition = partition or self._partition()
        query = self.query()
        conflict = self._conflict()
        return s.Insert(
            target=target,
            target_position=place.position,
            query=query,
            columns=columns,
            partition=partition,
            overwrite=overwrite,
            conflict=conflict,
            hints=hints,
            text=self.text_since(token),
            position=token.position,
        )

    def _target_options(self) -> s.Options:
        return tuple(option for hint in self.hints() if hint.name == "OPTIONS" for option in hint.options)

    def _partition(self) -> tuple[tuple[str, exp.Expression | None], ...]:
        return tuple(self.wrapped(self._partition_pair)) if self.take("PARTITION") else ()

    def _partition_pair(self) -> tuple[str, exp.Expression | None]:
        name = self.identifier().name
        return name, self.expression() if self.take("=") else None

    def _conflict(self) -> str:
        if not self.take("ON", "CONFLICT"):
            return ""
        self.expect("DO")
        return self.expect_any(*_CONFLICTS)

    def _execute(self, token: Token) -> s.Statement:
        """EXECUTE STATEMENT SET, EXECUTE INSERT, EXECUTE query."""
        if self.take("STATEMENT", "SET"):
            self.expect("BEGIN")
            return self._set_members(token)
        if self.at("PLAN"):
            return self._unsupported(token, "EXECUTE PLAN")
        if self.take("INSERT"):
            return self._insert(token)
        return self._query_statement(token)

    def _begin(self, token: Token) -> s.Statement:
        """``BEGIN STATEMENT SET; ... END``."""
        self.expect("STATEMENT", "SET", ";")
        return self._set_members(token)

    def _set_members(self, token: Token) -> s.StatementSet:
        inserts: list[s.Insert] = []
        while not (inserts and self.take("END")):
            first = self.current
            self.take("EXECUTE")
            self.expect("INSERT")
            inserts.append(self._insert(first))
            self.expect(";")
        return s.StatementSet(inserts=tuple(inserts), text=self.text_since(token), position=token.position)

    def _explain(self, token: Token) -> s.Statement:
        details: list[str] = []
        if self.take("PLAN"):
            self.expect("FOR")
        elif self.at_any(*_EXPLAIN_DETAILS):
            details = self.separated(lambda: self.expect_any(*_EXPLAIN_DETAILS))
        target = self._explained()
        return s.Explain(
            target=target, details=tuple(details), text=self.text_since(token), position=token.position
        )

    def _explained(self) -> s.Query | s.Insert | s.StatementSet | s.Unsupported:
        first = self.current
        if self.take("STATEMENT", "SET", "BEGIN") or self.take("EXECUTE", "STATEMENT", "SET", "BEGIN"):
            return self._set_members(first)
        if self.take("INSERT"):
            return self._insert(first)
        if first.upper in _UNSUPPORTED or self.at_any("CREATE"):
            return self._unsupported(first, f"EXPLAIN {first.upper}")
        return self._query_statement(first)

    def _set(self, token: Token) -> s.Statement:
        """SET 'key' = 'value'; the words may be bare, as in ``SET a.b-c = 1``."""
        if self.at_end() or self.at(";"):
            return s.SetOption(text=self.text_since(token), position=token.position)
        key = self._bare("=")
        self.expect("=")
        value = self._bare(";")
        return s.SetOption(key=key, value=value, text=self.text_since(token), position=token.position)

    def _reset(self, token: Token) -> s.Statement:
        key = "" if self.at_end() or self.at(";") else self._bare(";")
        return s.ResetOption(key=key, text=self.text_since(token), position=token.position)

    def _bare(self, end: str) -> str:
        """A quoted text, or everything up to ``end`` as written."""
        if self.at_kind(Kind.STRING):
            return self.string()
        first = self.current
        while not self.at_end() and not self.at(end):
            self.advance()
        if self.current is first:
            self.fail("<QUOTED_STRING>")
        return self.text_since(first).strip()

    def _add(self, token: Token) -> s.Statement:
        self.expect("JAR")
        return s.AddJar(jar=self.string(), text=self.text_since(token), position=token.position)

    def _remove(self, token: Token) -> s.Statement:
        self.expect("JAR")
        return s.RemoveJar(jar=self.string(), text=self.text_since(token), position=token.position)

    def _stop(self, token: Token) -> s.StopJob:
        self.expect("JOB")
        job_id = self.string()
        given: set[str] = set()
        while self.take("WITH"):
            given.add(self.expect_any("SAVEPOINT", "DRAIN"))
        return s.StopJob(
            job_id=job_id,
            savepoint="SAVEPOINT" in given,
            drain="DRAIN" in given,
            text=self.text_since(token),
            position=token.position,
        )

    _STATEMENTS: ClassVar[dict[str, Callable[[StatementGrammar, Token], s.Statement]]] = {
        "INSERT": _insert,
        "EXECUTE": _execute,
        "BEGIN": _begin,
        "EXPLAIN": _explain,
        "SET": _set,
        "RESET": _reset,
        "ADD": _add,
        "REMOVE": _remove,
        "STOP": _stop,
        "CREATE": ShowGrammar.create,
        "DROP": ShowGrammar.drop,
        "ALTER": ShowGrammar.alter,
        "USE": ShowGrammar.use,
        "SHOW": ShowGrammar.show,
        "DESCRIBE": ShowGrammar.describe,
        "DESC": ShowGrammar.describe,
    }
