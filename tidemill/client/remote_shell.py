"""``tidemill sql --gateway URL``: the shell over a gateway's session, Tidemill's or Flink's.

Statements go to the gateway as they are; what comes back is shown as the embedded shell shows it. Ctrl-C ends
a query and keeps the session.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tidemill.changelog.rowkind import RowKind
from tidemill.client.error_text import error_text
from tidemill.client.gateway_client import Answer, GatewayClient, GatewayError
from tidemill.client.pager import Pager
from tidemill.client.script import read_script
from tidemill.client.shell import (
    GREETING,
    HELP,
    command_of,
    piped_statements,
    plotted,
    terminal_lines,
    turned,
)
from tidemill.client.show_result import plot_query, show_query
from tidemill.config.client_options import LAYOUT
from tidemill.config.execution_options import RUNTIME_MODE
from tidemill.config.option import Configuration
from tidemill.config.table_options import MAX_COLUMN_WIDTH
from tidemill.errors import TidemillError
from tidemill.gateway.endpoints.rest.types import type_of
from tidemill.session.result import UNCUT, StatementKind, TableResult
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.sql.splitter import Piece, split
from tidemill.types.logical import Field

_SUBMITTED = "[INFO] SQL update statement has been successfully submitted:\nJob ID: {job_id}\n"


def command(parsed: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    variables = dict(parsed.variables)
    with GatewayClient(parsed.gateway).open(parsed.options, name="tidemill sql") as client:
        interactive = sys.stdin.isatty() and not parsed.file
        shell = RemoteShell(client, sys.stdout, interactive=interactive)
        for file in filter(None, (parsed.init, parsed.file)):
            if not shell.run_script(read_script(file, variables)):
                return 1
        if parsed.file:
            return 0
        if interactive:
            sys.stdout.write(GREETING)
        texts = terminal_lines(GatewayCompleter(client)) if interactive else piped_statements(sys.stdin)
        good = shell.loop(texts)
    return 0 if good or interactive else 1


class RemoteShell:
    """Runs what the user typed; no statement's failure ends it. Ctrl-C ends a statement; where they are piped
    in, all, by KeyboardInterrupt."""

    def __init__(self, client: GatewayClient, out: TextIO, *, interactive: bool = False) -> None:
        self._client = client
        self._out = out
        self._interactive = interactive
        self._ended = False

    def loop(self, texts: Iterator[str]) -> bool:
        """Whether all succeeded."""
        good = True
        for text in texts:
            good &= self.run_script(text)
            if self._ended:
                break
        return good

    def run_script(self, text: str) -> bool:
        """Whether all of its statements succeeded; stops at the first that fails."""
        drawn = plotted(text)
        word = command_of(text) if drawn is None else ""
        try:
            if word:
                self._command(word)
                return True
            for piece in split(text if drawn is None else drawn):
                self._run(piece, plot=drawn is not None)
        except TidemillError as e:
            self._out.write(f"{error_text(e, text)}\n")
            return False
        return True

    def _command(self, word: str) -> None:
        self._ended = word in ("QUIT", "EXIT", "\\Q")
        if word == "\\X":
            self._turn()
        elif not self._ended:
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
            if not self._interactive:
                raise
            self._out.write("\nStopped.\n")
        self._out.write(f"({time.monotonic() - begun:.2f} seconds)\n\n")

    def _show(self, answer: Answer, plot: bool) -> None:
        for text in answer.warnings:
            sys.stderr.write(f"Warning: {text}\n")
        fields = tuple(Field(c["name"], type_of(c["logicalType"])) for c in answer.columns)
        if [f.name for f in fields] == ["job id"] and answer.job_id:
            self._out.write(_SUBMITTED.format(job_id=answer.job_id))
            return
        rows: Iterator[ChangelogRow] = ((RowKind[kind], tuple(row)) for kind, row in answer.rows)
        if not answer.is_query:
            shown = TableResult(
                kind=StatementKind.OTHER, fields=fields, rows=rows, rendered=True, max_width=UNCUT
            )
            self._out.writelines(f"{line}\n" for line in shown.lines())
            return
        config = self._config()
        found = TableResult(
            kind=StatementKind.QUERY,
            fields=fields,
            rows=rows,
            changelog=config.read(RUNTIME_MODE).upper() != "BATCH",
            rendered=True,
            max_width=config.read(MAX_COLUMN_WIDTH),
        )
        if plot:
            plot_query(found, self._out)
        else:
            show_query(found, config, self._out, Pager() if self._interactive else None)

    def _config(self) -> Configuration:
        """The session's options as the gateway has them."""
        return Configuration(self._client.properties())

    def _turn(self) -> None:
        layout, said = turned(self._config())
        for _ in self._client.execute(f"SET '{LAYOUT.key}' = '{layout}'").rows:
            pass
        self._out.write(said)


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
