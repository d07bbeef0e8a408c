"""``tidemill sql``: an interactive shell. A statement ends with a semicolon, however many lines it has.

Besides SQL it knows HELP, CLEAR, QUIT and EXIT. Ctrl-C drops the line or stops the running query,
Ctrl-D leaves. History is kept in ``$XDG_STATE_HOME/tidemill/history`` (``~/.local/state``).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from tidemill.client import table_output
from tidemill.client.completion import SqlCompleter
from tidemill.client.error_text import error_text
from tidemill.client.progress import ProgressLine
from tidemill.client.script import read_script, script_folders
from tidemill.client.show_result import show_query
from tidemill.config import client_options
from tidemill.errors import SqlSyntaxError, TidemillError
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind, TableResult
from tidemill.sql.lexer import UnclosedError, tokens
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

PROMPT = "tidemill> "
CONTINUED = "        > "
HELP = """\
Statements end with a semicolon and may have several lines.
  SHOW TABLES;  DESCRIBE t;  SHOW FUNCTIONS;   what there is
  SET;  SET 'key' = 'value';  RESET 'key';     options
  SELECT ...;                                  Ctrl-C stops a query that does not end by itself
  QUIT;                                        or Ctrl-D
"""


def command(parsed: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    return run_shell(dict(parsed.options), dict(parsed.variables), parsed.init)


def run_shell(options: Mapping[str, str], variables: Mapping[str, str], init: str | None) -> int:
    """Reads statements until QUIT or the end of input; 1 where the script given first failed."""
    environment = TableEnvironment.create(options)
    environment.context.rendered = True
    environment.context.module_folders = script_folders(init) if init is not None else ()
    shell = Shell(environment, sys.stdout)
    if init is not None and not shell.run_script(read_script(init, variables)):
        return 1
    shell.loop(_terminal_lines(environment) if sys.stdin.isatty() else _piped_statements(sys.stdin))
    return 0


class Shell:
    """Runs what the user typed and shows the outcome; no statement's failure ends it."""

    def __init__(self, environment: TableEnvironment, out: TextIO) -> None:
        self._environment = environment
        self._out = out
        self.ended = False
        self._commands: dict[str, Callable[[], None]] = {
            "HELP": self._help,
            "CLEAR": self._clear,
            "QUIT": self._end,
            "EXIT": self._end,
        }

    def loop(self, texts: Iterator[str]) -> None:
        for text in texts:
            self.run_script(text)
            if self.ended:
                return

    def run_script(self, text: str) -> bool:
        """Whether all of its statements succeeded; stops at the first that fails."""
        progress = ProgressLine(sys.stderr)
        self._environment.context.on_progress = progress.show
        try:
            for piece in split(text):
                if self.ended:
                    break
                command = self._commands.get(piece.text.upper())
                if command is not None:
                    command()
                    continue
                begun = time.monotonic()
                result = self._environment.execute(parse_statement(piece.text, piece.position))
                self._show(result, begun, progress)
        except TidemillError as e:
            progress.clear()
            self._out.write(error_text(e, text))
            if self._environment.context.configuration.read(client_options.VERBOSE):
                raise
            return False
        return True

    def _show(self, result: TableResult, begun: float, progress: ProgressLine) -> None:
        config = self._environment.context.configuration
        try:
            if result.kind is StatementKind.QUERY:
                show_query(result, config, self._out, progress.clear)
            else:
                table_output.write_result(result, self._out, progress.clear)
        except KeyboardInterrupt:
            progress.clear()
            if result.job is not None:
                result.job.cancel()
            self._out.write("\nStopped.\n")
        if config.read(client_options.PRINT_TIME_COST):
            self._out.write(f"({time.monotonic() - begun:.2f} seconds)\n")
        self._out.write("\n")

    def _help(self) -> None:
        self._out.write(HELP)

    def _end(self) -> None:
        self.ended = True

    def _clear(self) -> None:
        self._out.write("\x1b[H\x1b[2J")


def is_complete(text: str) -> bool:
    """Whether ``text`` ends with a statement's semicolon, not one inside a string or statement set."""
    if not text.strip():
        return True
    if text.strip().rstrip(";").strip().upper() in ("QUIT", "EXIT", "HELP", "CLEAR"):
        return True
    ends = text.rstrip().endswith(";")
    try:
        return ends and len(list(split(text))) < len(list(split(text + "\nx")))
    except UnclosedError:
        return False
    except SqlSyntaxError:
        return ends


def continued(text: str) -> str:
    """The prompt of the line below ``text``; shows the quote that is still open."""
    try:
        list(tokens(text))
    except UnclosedError as e:
        return f"{e.opening:>7} > "
    except SqlSyntaxError:
        pass
    return CONTINUED


def _terminal_lines(environment: TableEnvironment) -> Iterator[str]:
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=SqlCompleter(environment.context),
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        key_bindings=_bindings(),
        prompt_continuation=_continuation,
    )
    while True:
        try:
            yield session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _continuation(_width: int, line: int, _wrapped: int) -> str:
    return continued("\n".join(get_app().current_buffer.document.lines[:line]))


def _bindings() -> KeyBindings:
    """Enter sends a complete statement and otherwise starts a new line."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _history() -> History:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    folder = Path(base) / "tidemill"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "history").touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(folder / "history"))


def _piped_statements(stream: TextIO) -> Iterator[str]:
    """Statements from a file or pipe, each handed over when its semicolon has come."""
    held = ""
    for line in stream:
        held += line
        if is_complete(held):
            yield held
            held = ""
    if held.strip():
        yield held
