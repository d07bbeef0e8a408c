"""``tidemill sql --gateway URL``: the shell over a gateway's session, Tidemill's or Flink's.

Statements go to the gateway as they are; what comes back is shown as the embedded shell shows it. Ctrl-C ends
a query and keeps the session.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tidemill.changelog.rowkind import RowKind
from tidemill.client.error_text import error_text
from tidemill.client.folding import Folding
from tidemill.client.gateway_client import Answer, GatewayClient, GatewayError
from tidemill.client.live import Live
from tidemill.client.live_table import LiveTable
from tidemill.client.plot import Plot
from tidemill.client.script import read_script
from tidemill.client.shell import GREETING, HELP, command_of, piped_statements, plotted, terminal_lines
from tidemill.config.client_options import MAX_RESULT_ROWS, RESULT_MODE
from tidemill.config.execution_options import RUNTIME_MODE
from tidemill.config.option import Configuration
from tidemill.config.table_options import MAX_COLUMN_WIDTH
from tidemill.errors import TidemillError
from tidemill.gateway.endpoints.rest.types import type_of
from tidemill.session import tableau, values
from tidemill.session.carrier import ChangelogRow
from tidemill.sql.splitter import Piece, split
from tidemill.types.logical import Field

_SUBMITTED = "[INFO] SQL update statement has been successfully submitted:\nJob ID: {job_id}\n"


def command(parsed: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    variables = dict(parsed.variables)
    with GatewayClient(parsed.gateway).open(parsed.options, name="tidemill sql") as client:
        interactive = sys.stdin.isatty() and not parsed.file
        shell = RemoteShell(client, sys.stdout)
        for file in filter(None, (parsed.init, parsed.file)):
            if not shell.run_script(read_script(file, variables)):
                return 1
        if parsed.file:
            return 0
        if interactive:
            sys.stdout.write(GREETING)
        shell.loop(terminal_lines(GatewayCompleter(client)) if interactive else piped_statements(sys.stdin))
    return 0


class RemoteShell:
    """Runs what the user typed; no statement's failure ends it."""

    def __init__(self, client: GatewayClient, out: TextIO) -> None:
        self._client = client
        self._out = out
        self._ended = False

    def loop(self, texts: Iterator[str]) -> None:
        for text in texts:
            self.run_script(text)
            if self._ended:
                return

    def run_script(self, text: str) -> bool:
        """Whether all of its statements succeeded; stops at the first that fails."""
        drawn = plotted(text)
        word = command_of(text) if drawn is None else ""
        if word:
            self._command(word)
            return True
        try:
            for piece in split(text if drawn is None else drawn):
                self._run(piece, plot=drawn is not None)
        except TidemillError as e:
            self._out.write(f"{error_text(e, text)}\n")
            return False
        return True

    def _command(self, word: str) -> None:
        self._ended = word in ("QUIT", "EXIT", "\\Q")
        if not self._ended:
            self._out.write(HELP if word in ("HELP", "\\HELP", "\\?") else "There is no such command here.\n")

    def _run(self, piece: Piece, *, plot: bool) -> None:
        begun = time.monotonic()
        try:
            self._show(self._client.execute(f"{piece.text};", row_format="PLAIN_TEXT"), plot)
        except GatewayError as e:
            e.position = piece.position.within(e.position) if e.position else piece.position
            raise
        except KeyboardInterrupt:
            self._client.cancel()
            self._out.write("\nStopped.\n")
        self._out.write(f"({time.monotonic() - begun:.2f} seconds)\n\n")

    def _show(self, answer: Answer, plot: bool) -> None:
        fields = tuple(Field(c["name"], type_of(c["logicalType"])) for c in answer.columns)
        names = [f.name for f in fields]
        if names == ["job id"] and answer.job_id:
            self._out.write(_SUBMITTED.format(job_id=answer.job_id))
            return
        rows: Iterator[ChangelogRow] = ((RowKind[kind], tuple(row)) for kind, row in answer.rows)
        if plot and answer.is_query:
            Live(self._out, Plot(fields, lambda _, value: str(value))).show(rows)
            return
        if names == ["result"] and not answer.is_query:
            lines: Iterator[str] = (str(row[0]).rstrip() for _, row in rows)
        else:
            lines = self._table(answer, fields, rows)
        for line in lines:
            self._out.write(f"{line}\n")
            self._out.flush()

    def _table(
        self, answer: Answer, fields: tuple[Field, ...], rows: Iterator[ChangelogRow]
    ) -> Iterator[str]:
        config = Configuration(self._client.properties()) if answer.is_query else Configuration()
        streaming = answer.is_query and config.get(RUNTIME_MODE.key, "streaming").lower() != "batch"
        width = config.read(MAX_COLUMN_WIDTH) if answer.is_query else 1 << 30
        if streaming and config.get(RESULT_MODE.key, "").upper() == "TABLE":
            return self._live_table(fields, rows, width, config.read(MAX_RESULT_ROWS))
        lay_out = tableau.stream_lines if streaming else tableau.batch_lines
        return lay_out(fields, rows, max_width=width, zone=dt.UTC, show=values.shown_text)

    def _live_table(
        self, fields: tuple[Field, ...], rows: Iterator[ChangelogRow], width: int, most: int
    ) -> Iterator[str]:
        """On a terminal shown while it changes; its lines at the end."""
        table = LiveTable(fields, Folding(most), width, dt.UTC, values.shown_text)
        table.follow(rows, self._out)
        return iter(table.all_lines())


class GatewayCompleter(Completer):
    """Asks the gateway what may stand there."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        begun = len(document.get_word_before_cursor(WORD=True))
        try:
            found = self._client.complete(document.text, document.cursor_position)
        except TidemillError:
            return
        yield from (Completion(text, start_position=-begun) for text in found)
