"""A query's result on the screen: by ``sql-client.execution.result-mode`` and ``tidemill.display.layout``,
or as a plot."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TextIO

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding
from tidemill.client.live import Live, LiveTable
from tidemill.client.pager import Pager
from tidemill.client.plot import Plot
from tidemill.client.progress import undisturbed
from tidemill.config import client_options
from tidemill.config.option import Configuration
from tidemill.session.result import TableResult
from tidemill.session.rows import tableau
from tidemill.session.rows.decoder import ChangelogRow


def show_query(result: TableResult, config: Configuration, out: TextIO, pager: Pager | None = None) -> None:
    """TABLEAU and CHANGELOG write rows as they come; TABLE shows the table that they make, on a terminal
    while it changes. A finished result that is longer than the screen goes to ``pager``; few of its rows are
    in memory at a time."""
    with undisturbed(out):
        _show(result, config, out, pager)


def _show(result: TableResult, config: Configuration, out: TextIO, pager: Pager | None) -> None:
    columns = shutil.get_terminal_size().columns if out.isatty() else None
    if result.changelog and config.read(client_options.RESULT_MODE).upper() != "TABLE":
        _write(_stream_lines(result, config, columns), out)
        return
    rows = iter(_live_rows(result, config, out)) if result.changelog else result.changes()
    lines = _finished_lines(result, rows, config, columns)
    for line in lines if pager is None else pager.show(lines):
        out.write(line + "\n")
    out.flush()


def plot_query(result: TableResult, out: TextIO) -> None:
    """Draws a query's result while it changes, and as it is at its end."""
    writes = [result.show(f.type, result.zone) for f in result.fields]
    plot = Plot(result.fields, lambda place, value: writes[place](value))
    Live(out, plot).show(result.changes())


def _live_rows(result: TableResult, config: Configuration, out: TextIO) -> list[ChangelogRow]:
    """The rows at the end; what was shown of them on the way has gone from the screen."""
    table = LiveTable(
        result.fields,
        Folding(config.read(client_options.MAX_RESULT_ROWS)),
        result.max_width,
        result.zone,
        result.show,
    )
    table.follow(result.changes(), out)
    return [(RowKind.INSERT, row) for row in table.rows.rows]


def _write(lines: Iterable[str], out: TextIO) -> None:
    for line in lines:
        out.write(line + "\n")
        out.flush()


def _stream_lines(result: TableResult, config: Configuration, columns: int | None) -> Iterator[str]:
    layout = _layout(config)
    too_wide = columns is not None and tableau.stream_width(result.fields, result.max_width) > columns
    if layout == "VERTICAL" or (layout == "AUTO" and too_wide):
        return _vertical(result, result.changes())
    return result.lines()


def _finished_lines(
    result: TableResult, rows: Iterator[ChangelogRow], config: Configuration, columns: int | None
) -> Iterator[str]:
    layout = _layout(config)
    if layout == "VERTICAL":
        return _vertical(result, rows)
    head = list(islice(rows, tableau.SAMPLE))  # all that a table reads before its first line
    table = _table(result, chain(head, rows))
    border = next(table)
    if layout == "TABLE" or columns is None or len(border) <= columns:
        return chain([border], table)
    return _vertical(result, chain(head, rows))


def _layout(config: Configuration) -> str:
    return config.read(client_options.LAYOUT).upper()


def _table(result: TableResult, rows: Iterable[ChangelogRow]) -> Iterator[str]:
    return tableau.batch_lines(
        result.fields, rows, max_width=result.max_width, zone=result.zone, show=result.show
    )


def _vertical(result: TableResult, rows: Iterable[ChangelogRow]) -> Iterator[str]:
    return tableau.vertical_lines(
        result.fields, rows, zone=result.zone, show=result.show, op=result.changelog
    )
