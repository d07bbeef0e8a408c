"""USE, LOAD and UNLOAD MODULE, SET, RESET, ADD and REMOVE JAR, STOP and VERIFY JOB, each read
behind its first word."""

from __future__ import annotations

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.lexer import Kind, Token


def use(cursor: Cursor, token: Token) -> s.Statement:
    """Behind USE."""
    if cursor.take("CATALOG"):
        name = cursor.identifier().name
        return s.UseCatalog(name=name, text=cursor.text_since(token), position=token.position)
    if cursor.take("MODULES"):
        names = tuple(cursor.separated(lambda: cursor.identifier().name))
        return s.UseModules(names=names, text=cursor.text_since(token), position=token.position)
    path = cursor.names()
    return s.UseDatabase(path=path, text=cursor.text_since(token), position=token.position)


def load_module(cursor: Cursor, token: Token) -> s.LoadModule:
    cursor.expect("MODULE")
    name = cursor.identifier().name
    options = clauses.with_properties(cursor)
    text = cursor.text_since(token)
    return s.LoadModule(name=name, options=options, text=text, position=token.position)


def unload_module(cursor: Cursor, token: Token) -> s.UnloadModule:
    cursor.expect("MODULE")
    name = cursor.identifier().name
    return s.UnloadModule(name=name, text=cursor.text_since(token), position=token.position)


def set_option(cursor: Cursor, token: Token) -> s.Statement:
    """SET 'key' = 'value'; the words may be bare, as in ``SET a.b-c = 1``."""
    if cursor.at_end() or cursor.at(";"):
        return s.SetOption(text=cursor.text_since(token), position=token.position)
    key = _bare(cursor, "=")
    cursor.expect("=")
    value = _bare(cursor, ";")
    return s.SetOption(key=key, value=value, text=cursor.text_since(token), position=token.position)


def reset_option(cursor: Cursor, token: Token) -> s.Statement:
    key = "" if cursor.at_end() or cursor.at(";") else _bare(cursor, ";")
    return s.ResetOption(key=key, text=cursor.text_since(token), position=token.position)


def _bare(cursor: Cursor, end: str) -> str:
    """A quoted text, or everything up to ``end`` as written."""
    if cursor.at_kind(Kind.STRING):
        return cursor.string()
    first = cursor.current
    while not cursor.at_end() and not cursor.at(end):
        cursor.advance()
    if cursor.current is first:
        cursor.fail("<QUOTED_STRING>")
    return cursor.text_since(first).strip()


def add_jar(cursor: Cursor, token: Token) -> s.Statement:
    cursor.expect("JAR")
    return s.AddJar(jar=cursor.string(), text=cursor.text_since(token), position=token.position)


def remove_jar(cursor: Cursor, token: Token) -> s.Statement:
    cursor.expect("JAR")
    return s.RemoveJar(jar=cursor.string(), text=cursor.text_since(token), position=token.position)


def verify_job(cursor: Cursor, token: Token) -> s.VerifyJob:
    cursor.expect("JOB")
    job_id = cursor.string()
    return s.VerifyJob(job_id=job_id, text=cursor.text_since(token), position=token.position)


def stop_job(cursor: Cursor, token: Token) -> s.StopJob:
    cursor.expect("JOB")
    job_id = cursor.string()
    options: set[str] = set()
    while cursor.take("WITH"):
        options.add(cursor.expect_any("SAVEPOINT", "DRAIN"))
    if options == {"DRAIN"}:
        message = "WITH DRAIN could only be used after WITH SAVEPOINT."
        raise SqlSyntaxError(message, position=token.position)
    return s.StopJob(
        job_id=job_id,
        savepoint="SAVEPOINT" in options,
        drain="DRAIN" in options,
        text=cursor.text_since(token),
        position=token.position,
    )
