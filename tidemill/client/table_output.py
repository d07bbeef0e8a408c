"""``--format table``: results for people; the first failing statement ends the script."""

from __future__ import annotations

from typing import TextIO

from tidemill.client.error_text import error_text
from tidemill.client.show_result import show_query
from tidemill.config.option import Configuration
from tidemill.errors import TidemillError
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind, TableResult
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split


def run_script(environment: TableEnvironment, script: str, out: TextIO, errors: TextIO) -> bool:
    """Whether all statements succeeded."""
    try:
        for piece in split(script):
            result = environment.execute(parse_statement(piece.text, piece.position))
            write_result(result, environment.context.configuration, out)
    except TidemillError as e:
        errors.write(error_text(e, script))
        return False
    return True


def write_result(result: TableResult, config: Configuration, out: TextIO) -> None:
    """Writes a result and waits for its job; statements that only say OK say it in a line."""
    if result.kind is StatementKind.INSERT:
        result.wait()
        out.write("Complete execution of the SQL update statement.\n")
        return
    if result.ok:
        out.write("OK\n")
        return
    if result.kind is StatementKind.QUERY:
        show_query(result, config, out)
        return
    out.writelines(line + "\n" for line in result.lines())
