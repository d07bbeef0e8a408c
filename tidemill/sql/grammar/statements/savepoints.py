"""CREATE, SHOW, DESCRIBE, DIFF and DROP SAVEPOINT, each read from SAVEPOINT or SAVEPOINTS on."""

from __future__ import annotations

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements.insert import Inserts
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Kind, Token


def create_savepoint(cursor: Cursor, trees: Trees, token: Token) -> s.CreateSavepoint | s.BuildSavepoint:
    cursor.expect("SAVEPOINT")
    path = cursor.string() if cursor.at_kind(Kind.STRING) else ""
    cursor.expect("FOR")
    if path and cursor.at_any("EXECUTE", "INSERT", "STATEMENT"):
        return _build_savepoint(cursor, trees, path, token)
    cursor.expect("JOB")
    job_id = cursor.string()
    text = cursor.text_since(token)
    return s.CreateSavepoint(job_id=job_id, path=path, text=text, position=token.position)


def _build_savepoint(cursor: Cursor, trees: Trees, path: str, token: Token) -> s.BuildSavepoint:
    """From INSERT or STATEMENT SET on."""
    target = Inserts(cursor, trees).one_or_more()
    cursor.expect("WITH", "STATE")
    tables = tuple(cursor.wrapped(lambda: _state_query(cursor, trees)))
    text = cursor.text_since(token)
    return s.BuildSavepoint(path=path, target=target, tables=tables, text=text, position=token.position)


def _state_query(cursor: Cursor, trees: Trees) -> s.StateQuery:
    """``table [(columns)] AS query``."""
    start_token = cursor.current.position
    table = cursor.identifier().name
    columns = cursor.name_list() if cursor.at("(") else ()
    cursor.expect("AS")
    return s.StateQuery(table=table, columns=columns, query=trees.query(), position=start_token)


def show_savepoints(cursor: Cursor, token: Token) -> s.ShowSavepoints:
    cursor.expect("SAVEPOINTS")
    directory = cursor.string() if cursor.take_any("IN", "FROM") else ""
    text = cursor.text_since(token)
    return s.ShowSavepoints(directory=directory, text=text, position=token.position)


def describe_savepoint(cursor: Cursor, token: Token) -> s.DescribeSavepoint:
    cursor.expect("SAVEPOINT")
    path = cursor.string()
    return s.DescribeSavepoint(path=path, text=cursor.text_since(token), position=token.position)


def diff_savepoint(cursor: Cursor, token: Token) -> s.DiffSavepoint:
    cursor.expect("SAVEPOINT")
    first = cursor.string()
    cursor.expect("WITH")
    second = cursor.string()
    text = cursor.text_since(token)
    return s.DiffSavepoint(first=first, second=second, text=text, position=token.position)


def drop_savepoint(cursor: Cursor, token: Token) -> s.DropSavepoint:
    cursor.expect("SAVEPOINT")
    if_exists = cursor.take("IF", "EXISTS")
    path = cursor.string()
    text = cursor.text_since(token)
    return s.DropSavepoint(path=path, if_exists=if_exists, text=text, position=token.position)
