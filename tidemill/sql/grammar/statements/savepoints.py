"""CREATE, SHOW, DESCRIBE and DROP SAVEPOINT, each read from SAVEPOINT or SAVEPOINTS on."""

from __future__ import annotations

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Kind, Token


def create_savepoint(cursor: Cursor, token: Token) -> s.CreateSavepoint:
    cursor.expect("SAVEPOINT")
    path = cursor.string() if cursor.at_kind(Kind.STRING) else ""
    cursor.expect("FOR", "JOB")
    job_id = cursor.string()
    text = cursor.text_since(token)
    return s.CreateSavepoint(job_id=job_id, path=path, text=text, position=token.position)


def show_savepoints(cursor: Cursor, token: Token) -> s.ShowSavepoints:
    cursor.expect("SAVEPOINTS")
    directory = cursor.string() if cursor.take_any("IN", "FROM") else ""
    text = cursor.text_since(token)
    return s.ShowSavepoints(directory=directory, text=text, position=token.position)


def describe_savepoint(cursor: Cursor, token: Token) -> s.DescribeSavepoint:
    cursor.expect("SAVEPOINT")
    path = cursor.string()
    return s.DescribeSavepoint(path=path, text=cursor.text_since(token), position=token.position)


def drop_savepoint(cursor: Cursor, token: Token) -> s.DropSavepoint:
    cursor.expect("SAVEPOINT")
    if_exists = cursor.take("IF", "EXISTS")
    path = cursor.string()
    text = cursor.text_since(token)
    return s.DropSavepoint(path=path, if_exists=if_exists, text=text, position=token.position)
