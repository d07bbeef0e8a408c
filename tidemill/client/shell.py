"""``tidemill sql``: an interactive shell. A statement ends with a semicolon, however many lines it has.

Besides SQL it knows a few commands (``HELP``). Ctrl-C drops the line or stops the running query, Ctrl-D
leaves. At a terminal an INSERT starts its job and gives the prompt back, unless ``table.dml-sync``.
History is kept in ``$XDG_STATE_HOME/tidemill/history`` (``~/.local/state``).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.patch_stdout import patch_stdout
from pygments.lexers.sql import SqlLexer

from tidemill.client import table_output
from tidemill.client.completion import SqlCompleter
from tidemill.client.error_text import error_text
from tidemill.client.own_jobs import answered_for
from tidemill.client.pager import Pager
from tidemill.client.progress import Apart
from tidemill.client.script import read_script, script_folders
from tidemill.client.show_result import plot_query, show_query
from tidemill.client.terminal import shown_apart, warnings_shown
from tidemill.config import client_options, table_options
from tidemill.config.option import Configuration
from tidemill.errors import Position, SqlSyntaxError, TidemillError
from tidemill.session.environment import TableEnvironment
from tidemill.session.history.keeper import Keeper, own_records
from tidemill.session.jobs.job import JobHandle
from tidemill.session.result import StatementKind, TableResult
from tidemill.sql.lexer import UnclosedError, tokens
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import Piece, split

_PLOT = re.compile(r"\s*\\plot\b", re.IGNORECASE)
COMMANDS = ("HELP", "\\HELP", "\\?", "\\X", "CLEAR", "QUIT", "EXIT", "\\Q")
PROMPT = "tidemill> "
CONTINUED = "        > "
HELP = """\
Statements end with a semicolon and may have several lines.
  SHOW TABLES;  DESCRIBE t;  SHOW FUNCTIONS;   what there is
  SET;  SET 'key' = 'value';  RESET 'key';     options
  SELECT ...;                                  Ctrl-C stops a query that does not end by itself
  INSERT INTO t SELECT ...;                    starts a job and gives the prompt back
  SHOW JOBS;  STOP JOB 'id';                   the jobs of this session
  \\plot SELECT ...;                            draws a query's result while it changes
  \\x                                           rows in a line, or a line for each column
  \\help or HELP;  CLEAR;  \\q or QUIT;          or Ctrl-D
"""
GREETING = "Flink SQL on Spark. Statements end with a semicolon; \\help says more, \\q leaves.\n"
_INSERTED = """\
[INFO] SQL update statement has been successfully submitted:
Job ID: {job_id}
"""


def command(parsed: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    return run_shell(parsed.options, dict(parsed.variables), parsed.init)


def run_shell(options: Mapping[str, str], variables: Mapping[str, str], init: str | None) -> int:
    """Reads statements until QUIT or the end of input; 1 where the script given first failed, or a statement
    that was piped in."""
    environment = TableEnvironment.create(options)
    environment.context.rendered = True
    environment.context.history = Keeper(records=own_records(environment.context.configuration))
    environment.context.module_folders = script_folders(init) if init is not None else ()
    interactive = sys.stdin.isatty()
    shell = Shell(environment, sys.stdout, interactive=interactive)
    if interactive:
        sys.stdout.write(GREETING)
    with warnings_shown(), answered_for(environment.context):
        if init is not None and not shell.run_script(read_script(init, variables)):
            return 1
        completer = SqlCompleter(environment.context)
        good = shell.loop(terminal_lines(completer) if interactive else piped_statements(sys.stdin))
        shell.end_jobs()
    return 0 if good or interactive else 1


class Shell:
    """Runs what the user typed and shows the outcome; no statement's failure ends it.

    ``interactive``: somebody sits at it, so that jobs may run behind the prompt, long results are paged, and
    Ctrl-C is for a statement. Of statements that are piped in it ends all, by KeyboardInterrupt.
    """

    def __init__(self, environment: TableEnvironment, out: TextIO, *, interactive: bool = False) -> None:
        self._environment = environment
        self._out = out
        self._interactive = interactive
        self._behind: list[JobHandle] = []
        self.ended = False
        self._commands: dict[str, Callable[[], None]] = {
            "HELP": self._help,
            "\\HELP": self._help,
            "\\?": self._help,
            "\\X": self._turn,
            "\\PLOT": self._help,
            "CLEAR": self._clear,
            "QUIT": self._end,
            "EXIT": self._end,
            "\\Q": self._end,
        }

    def loop(self, texts: Iterator[str]) -> bool:
        """Whether all succeeded."""
        good = True
        for text in texts:
            try:
                good &= self.run_script(text)
            except KeyboardInterrupt:
                if not self._interactive:
                    raise
                good = False
                self._out.write("\nStopped.\n\n")
            self._say_ended()
            if self.ended:
                break
        return good

    def run_script(self, text: str) -> bool:
        """Whether all of its statements succeeded; stops at the first that fails."""
        with shown_apart(self._environment.context) as progress:
            try:
                self._run(text, cast(TextIO, Apart(self._out, progress)))
            except TidemillError as e:
                progress.clear()
                self._out.write(error_text(e, text))
                if self._environment.context.configuration.read(client_options.VERBOSE):
                    raise
                return False
        return True

    def end_jobs(self) -> None:
        """Stops the jobs behind the prompt, each after its epoch."""
        running = [job for job in self._behind if job.is_running()]
        for job in running:
            self._out.write(f"Job {job.job_id} stops after its current epoch.\n")
            job.stop()
        for job in running:
            with contextlib.suppress(TidemillError):
                job.wait()

    def _run(self, text: str, out: TextIO) -> None:
        pieces = [Piece(text.strip(), Position(1, 1))] if command_of(text) else split(text)
        for piece in pieces:
            if self.ended:
                return
            drawn = plotted(piece.text)
            word = command_of(piece.text) if drawn is None else ""
            if word:
                self._commands.get(word, self._unknown)()
                continue
            begun = time.monotonic()
            statement = parse_statement(piece.text if drawn is None else drawn, piece.position)
            self._show(self._environment.execute(statement), begun, out, plot=drawn is not None)

    def _show(self, result: TableResult, begun: float, out: TextIO, *, plot: bool = False) -> None:
        config = self._environment.context.configuration
        try:
            if result.kind is StatementKind.INSERT and self._stays_behind(result):
                out.write(_INSERTED.format(job_id=result.job.job_id if result.job else ""))
            elif plot and result.kind is StatementKind.QUERY:
                plot_query(result, out)
            elif result.kind is StatementKind.QUERY:
                show_query(result, config, out, Pager() if self._interactive else None)
            else:
                table_output.write_result(result, config, out)
        except KeyboardInterrupt:
            out.write("\nStopping after the current epoch; Ctrl-C does not wait for it.\n")
            if result.job is not None:
                result.job.cancel()
            if not self._interactive:
                raise
            out.write("Stopped.\n")
        if config.read(client_options.PRINT_TIME_COST):
            out.write(f"({time.monotonic() - begun:.2f} seconds)\n")
        out.write("\n")

    def _stays_behind(self, result: TableResult) -> bool:
        """Whether the job of an INSERT goes on while the next statement is typed."""
        sync = self._environment.context.configuration.read(table_options.DML_SYNC)
        if not self._interactive or sync or result.job is None:
            return False
        self._behind.append(result.job)
        return True

    def _say_ended(self) -> None:
        """Of jobs behind the prompt that have ended since the last statement."""
        for job in [j for j in self._behind if not j.is_running()]:
            self._behind.remove(job)
            self._out.write(f"Job {job.job_id} ({job.name}): {job.status}\n")
            try:
                job.wait()
            except TidemillError as e:
                self._out.write(error_text(e, ""))

    def _turn(self) -> None:
        context = self._environment.context
        layout, said = turned(context.configuration)
        context.set_option(client_options.LAYOUT.key, layout)
        self._out.write(said)

    def _unknown(self) -> None:
        self._out.write("There is no such command. \\help lists those there are.\n")

    def _help(self) -> None:
        self._out.write(HELP)

    def _end(self) -> None:
        self.ended = True

    def _clear(self) -> None:
        self._out.write("\x1b[H\x1b[2J")


def turned(config: Configuration) -> tuple[str, str]:
    """What ``\\x`` makes of the layout, and says of it."""
    if config.read(client_options.LAYOUT).upper() == "VERTICAL":
        return "AUTO", "Rows are shown in a line.\n"
    return "VERTICAL", "Rows are shown in lines: one for each column.\n"


def command_of(text: str) -> str:
    """The command that ``text`` is, '' where it is none; a semicolon after it is allowed. A line with a
    backslash before it is one, known or not: no statement begins so."""
    word = text.strip().rstrip(";").strip().upper()
    return word if word in COMMANDS or word.startswith("\\") else ""


def plotted(text: str) -> str | None:
    """The query of ``\\plot QUERY;``; None where that is not what ``text`` is."""
    found = _PLOT.match(text)
    return None if found is None else text[found.end() :].strip().removesuffix(";") or None


def is_complete(text: str) -> bool:
    """Whether ``text`` ends with a statement's semicolon, not one inside a string or statement set."""
    if not text.strip():
        return True
    found = _PLOT.match(text)
    if found is not None and text[found.end() :].strip():
        return is_complete(text[found.end() :])
    if command_of(text):
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


def terminal_lines(completer: Completer) -> Iterator[str]:
    """What is typed at a terminal, a statement or a command at a time."""
    session: PromptSession[str] = PromptSession(
        history=_history(),
        completer=completer,
        complete_while_typing=False,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        key_bindings=_bindings(),
        prompt_continuation=_continuation,
    )
    while True:
        try:
            # What jobs behind the prompt print stands above it, and what is being typed stays whole.
            with patch_stdout(raw=True):
                text = session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        yield text


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


def piped_statements(stream: TextIO) -> Iterator[str]:
    """Statements from a file or pipe, each handed over when its semicolon has come."""
    held = ""
    for line in stream:
        held += line
        if is_complete(held):
            yield held
            held = ""
    if held.strip():
        yield held
