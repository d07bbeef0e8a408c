"""A query's result on the screen, by ``sql-client.execution.result-mode``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TextIO

from tidemill.changelog.rowkind import RowKind
from tidemill.config import client_options
from tidemill.config.option import Configuration
from tidemill.session import tableau, values
from tidemill.session.carrier import ChangelogRow
from tidemill.session.result import TableResult


def show_query(
    result: TableResult, config: Configuration, out: TextIO, before_output: Callable[[], None]
) -> None:
    """TABLEAU and CHANGELOG write rows as they come; TABLE the final rows when the query has ended."""
    for line in _lines(result, config):
        before_output()
        out.write(line + "\n")
        out.flush()


def _lines(result: TableResult, config: Configuration) -> Iterator[str]:
    if config.read(client_options.RESULT_MODE).upper() != "TABLE" or not result.changelog:
        return result.lines()
    rows = final_rows(result.changes(), config.read(client_options.MAX_RESULT_ROWS))
    show = values.shown_text if result.rendered else values.text
    return tableau.batch_lines(result.fields, rows, max_width=result.max_width, zone=result.zone, show=show)


def final_rows(changes: Iterator[ChangelogRow], limit: int) -> list[ChangelogRow]:
    """The changelog folded to its rows; of more than ``limit`` the oldest are left out."""
    held: dict[str, list[ChangelogRow]] = {}
    for kind, carried in changes:
        copies = held.pop(repr(carried), [])
        if kind.weight > 0:
            copies.append((RowKind.INSERT, carried))
        elif copies:
            copies.pop()
        if copies:
            held[repr(carried)] = copies
    return [row for copies in held.values() for row in copies][-limit:]
