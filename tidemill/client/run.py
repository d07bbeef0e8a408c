"""``tidemill run``: scripts in order, each in a fresh session; one Spark application for all."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from tidemill.client import json_output, table_output
from tidemill.client.own_jobs import answered_for
from tidemill.client.run_watch import RunWatch, serving
from tidemill.client.script import read_script, script_folders
from tidemill.client.terminal import shown_apart, warnings_shown
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration
from tidemill.errors import TidemillError
from tidemill.session.environment import TableEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    files: tuple[str, ...]
    init: tuple[str, ...] = ()
    json: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    checkpoint_directory: str = ""
    metrics_at: str = ""
    """Where its metrics are, and its console: ``[HOST:]PORT``, '' for nowhere."""
    console_at: str = ""


def command(parsed: argparse.Namespace) -> int:
    """Runs what the command line asks for."""
    return run_files(
        RunRequest(
            files=tuple(parsed.files),
            init=tuple(parsed.init),
            json=parsed.format == "json",
            options=parsed.options,
            variables=dict(parsed.variables),
            checkpoint_directory=parsed.checkpoint_dir,
            metrics_at=parsed.metrics_port,
            console_at=parsed.console_port or ("0" if parsed.console else ""),
        )
    )


def run_files(request: RunRequest) -> int:
    """The exit status: 0 in JSON format, else 1 after the first script that failed."""
    runner: Callable[[str, RunRequest, RunWatch], bool] = _run_json if request.json else _run_table
    watch = RunWatch.of(Configuration(request.options))
    with warnings_shown(), serving(watch, metrics_at=request.metrics_at, console_at=request.console_at):
        return 0 if all(runner(file, request, watch) for file in request.files) else 1


def new_environment(file: str, request: RunRequest, watch: RunWatch) -> TableEnvironment:
    """A session for one script, with the command line's options, that has run the scripts of ``-i``; values
    come as text. Modules of user functions may lie beside any of them."""
    options = dict(request.options)
    if request.checkpoint_directory:
        options[CHECKPOINT_DIRECTORY.key] = request.checkpoint_directory
    environment = TableEnvironment.create(options)
    environment.context.rendered = True
    watch.follow(environment.context)
    environment.context.module_folders = script_folders(file, *request.init)
    for prepared in request.init:
        _prepare(environment, prepared, request.variables)
    return environment


def _prepare(environment: TableEnvironment, file: str, variables: Mapping[str, str]) -> None:
    try:
        for result in environment.execute_script(read_script(file, variables)):
            result.wait()
    except TidemillError as e:
        e.message = f"{file}: {e.message}"
        raise


def _run_json(file: str, request: RunRequest, watch: RunWatch) -> bool:
    with ExitStack() as asked:

        def make() -> TableEnvironment:
            environment = new_environment(file, request, watch)
            asked.enter_context(answered_for(environment.context))
            return environment

        json_output.run_script(file, request.variables, make, sys.stdout)
    return True


def _run_table(file: str, request: RunRequest, watch: RunWatch) -> bool:
    script = read_script(file, request.variables)
    environment = new_environment(file, request, watch)
    with answered_for(environment.context), shown_apart(environment.context):
        return table_output.run_script(environment, script, sys.stdout, sys.stderr)
