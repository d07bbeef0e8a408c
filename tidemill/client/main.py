"""The command line: ``tidemill run FILE...``, ``tidemill sql``, ``tidemill gateway`` and the small commands.

Nothing heavy is imported here: ``--version`` and a mistyped option answer at once. A command's module is
loaded when its command line is known to be right, while Spark starts in a thread beside it.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from tidemill.client.command_options import command_options, gateway_of
from tidemill.errors import TidemillError, ValidationError
from tidemill.interrupts import no_torn_calls_shown
from tidemill.late import loaded

_SPARK = "tidemill.runtime.spark.session"
_RUN = "tidemill.client.run"
INTERRUPTED, TERMINATED = 130, 143
"""As shells say it of a process that SIGINT or SIGTERM has ended."""
_SHELL, _REMOTE_SHELL = "tidemill.client.shell", "tidemill.client.remote_shell"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; gives the exit status.

    The status is 0, 1 if a statement failed, 2 for a wrong command line, 130 after Ctrl-C, and 143 if ``run``
    was terminated. ``arguments`` None means the command line of this process; then Spark starts early, in a
    thread. A caller with arguments, such as a test, may have its own Spark.
    """
    parsed = _parser().parse_args(arguments)
    terminated = _Terminated()
    if arguments is None and parsed.module == _RUN:
        signal.signal(signal.SIGTERM, terminated)
    try:
        with no_torn_calls_shown():
            return _run(parsed, ahead=arguments is None)
    except TidemillError as e:
        sys.stderr.write(f"{e}\n")
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        status = TERMINATED if terminated.heard else INTERRUPTED
        if arguments is None:
            _leave(status)
        return status


def _leave(status: int) -> NoReturn:
    """Ends the process, after what is registered for its end, but without Python's own end: that crashes if
    a stopped thread is still in native code."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody may read it any more
            stream.flush()
    os._exit(status)


class _Terminated:
    """A job scheduler ends jobs with SIGTERM. The handler does the same as Ctrl-C: it removes staged files.
    If the process ignores Ctrl-C, as in the background of a script, the process ends at once."""

    def __init__(self) -> None:
        self.heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        interrupted = signal.getsignal(signal.SIGINT)
        if callable(interrupted):
            interrupted(signal.SIGINT, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _run(parsed: argparse.Namespace, *, ahead: bool) -> int:
    if parsed.spark:
        parsed.options = command_options(parsed)
    if parsed.module == _SHELL:
        parsed.gateway = gateway_of(parsed)
    if parsed.module == _SHELL and parsed.gateway:
        parsed.spark, parsed.module = False, _REMOTE_SHELL
    elif parsed.module == _SHELL and parsed.file:
        raise ValidationError("-f is for --gateway: 'tidemill run FILE' runs a script here.")
    if parsed.module == _RUN and parsed.format == "table":
        loaded("tidemill.client.script").check_scripts(*parsed.init, *parsed.files)
    if ahead and parsed.spark:
        loaded(_SPARK).start_ahead(parsed.options)
    status: int = getattr(loaded(parsed.module), parsed.function)(parsed)
    if ahead:
        gc.freeze()  # the process ends without a look for garbage
    return status


class _Host(argparse.Action):
    """``-h HOST``; without one, help."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if values is None:
            parser.print_help()
            parser.exit()
        setattr(namespace, self.dest, values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidemill", description="Flink SQL on Spark.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="run SQL scripts", description="Runs SQL scripts in order."))
    _add_gateway(
        commands.add_parser("gateway", help="a server for SQL clients", description="A SQL gateway.")
    )
    shell = commands.add_parser(
        "sql", help="an interactive shell", description="An interactive shell.", add_help=False
    )
    _add_sql(shell)
    _add_jobs(commands)
    _add_savepoints(commands)
    _add_kafka(commands)
    _add_history(commands)
    user = commands.add_parser("user", help="a line for a gateway's users file")
    user.set_defaults(spark=False, module="tidemill.gateway.security.add_user", function="command")
    user.add_argument("name", metavar="NAME")
    user.add_argument("--token", action="store_true", help="a new bearer token instead of a password")
    return parser


def _add_jobs(commands: Any) -> None:
    listed = commands.add_parser("jobs", help="the jobs of a gateway, and of tidemill run")
    stopped = commands.add_parser("stop", help="stop a job with a savepoint")
    cancelled = commands.add_parser("cancel", help="stop a job")
    stopped.add_argument("job_id", metavar="ID")
    stopped.add_argument(
        "--savepoint-dir",
        metavar="DIR",
        default="",
        help="where the savepoint is written (execution.checkpointing.savepoint-dir)",
    )
    stopped.add_argument("--drain", action="store_true", help="first emit the results of open windows")
    cancelled.add_argument("job_id", metavar="ID")
    for parser, function in ((listed, "list_jobs"), (stopped, "stop_job"), (cancelled, "cancel_job")):
        parser.set_defaults(spark=False, module="tidemill.client.jobs", function=function)
        parser.add_argument(
            "--gateway",
            metavar="URL",
            default="",
            help="only this gateway: http://[user:password@]HOST:PORT; default: jobs of tidemill run, and "
            "of the gateway at $TIDEMILL_GATEWAY or http://127.0.0.1:8083",
        )


def _add_savepoints(commands: Any) -> None:
    parser = commands.add_parser("savepoint", help="savepoints of jobs, and what is in them")
    parser.set_defaults(spark=False, module="tidemill.client.savepoints")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    made = verbs.add_parser("create", help="write one of a job that goes on")
    made.set_defaults(function="create")
    made.add_argument("job_id", metavar="ID")
    made.add_argument("--path", metavar="DIR", default="", help="where it shall lie")
    made.add_argument("--savepoint-dir", metavar="DIR", default="", help="where it gets a folder of its own")
    made.add_argument("--gateway", metavar="URL", default="", help="as for 'tidemill jobs'")
    listed = verbs.add_parser("list", help="those in a directory, oldest first")
    listed.set_defaults(function="list_all")
    listed.add_argument("directory", metavar="DIR")
    described = verbs.add_parser("describe", help="its job, sources and operators")
    described.set_defaults(function="describe")
    described.add_argument("place", metavar="DIR")
    described.add_argument("--verify", action="store_true", help="compare every file with its checksum")
    compared = verbs.add_parser("diff", help="what two do not share; the status is 1 if there is something")
    compared.set_defaults(function="diff")
    compared.add_argument("first", metavar="DIR")
    compared.add_argument("second", metavar="DIR")
    for verb, function, told in (
        ("export", "export", "write its state as Parquet into a new directory"),
        ("import", "import_back", "make a savepoint of an export in a new directory"),
    ):
        moved = verbs.add_parser(verb, help=told)
        moved.set_defaults(function=function)
        moved.add_argument("place", metavar="FROM")
        moved.add_argument("target", metavar="TO")
    deleted = verbs.add_parser("delete", help="remove savepoints, and nothing else")
    deleted.set_defaults(function="delete")
    deleted.add_argument("places", metavar="DIR", nargs="+")


def _add_kafka(commands: Any) -> None:
    parser = commands.add_parser("kafka", help="what jobs have left in Kafka")
    parser.set_defaults(spark=False, module="tidemill.client.kafka")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    aborted = verbs.add_parser(
        "abort-pending", help="end transactions that jobs have left open; prints their ids"
    )
    aborted.set_defaults(function="abort_pending")
    aborted.add_argument("servers", metavar="HOST:PORT", help="the cluster (properties.bootstrap.servers)")
    aborted.add_argument("ids", metavar="ID", nargs="*", help="transactional ids")
    aborted.add_argument(
        "--prefix",
        metavar="PREFIX",
        help="all open transactions whose ids begin with sink.transactional-id-prefix",
    )
    aborted.add_argument("--dry-run", action="store_true", help="only print the ids")
    aborted.add_argument(
        "--property",
        dest="properties",
        action="append",
        default=[],
        metavar="key=value",
        type=_pair,
        help="a property of the client, as of a table but without 'properties.': sasl.*, ssl.*, ...",
    )


def _add_history(commands: Any) -> None:
    parser = commands.add_parser("history", help="ended jobs, and how they ran")
    parser.set_defaults(spark=False, module="tidemill.client.history", function="command")
    parser.add_argument(
        "job_id",
        metavar="JOB",
        nargs="?",
        default="",
        help="everything about one job, by its id or the beginning of its id",
    )
    parser.add_argument("--last", type=_count, metavar="N", default=20, help="the last N jobs (20)")
    parser.add_argument("--json", action="store_true", help="as JSON, one job a line")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        default="",
        help="the folder of the history (tidemill.history.directory)",
    )
    parser.add_argument(
        "--gateway",
        metavar="URL",
        default="",
        help="the jobs of this gateway: http://[user:password@]HOST:PORT",
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of jobs")
    return int(text)


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module=_RUN)
    parser.add_argument("files", nargs="+", metavar="FILE", help="SQL scripts; each has its own session")
    parser.add_argument(
        "-i",
        "--init",
        action="append",
        default=[],
        metavar="FILE",
        help="run this script first in each session; may be repeated",
    )
    parser.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="table: for people. json: one line per script; a failing statement is data, the status is 0",
    )
    parser.add_argument(
        "--checkpoint-dir", metavar="DIR", default="", help="keep the job's state here, and resume from it"
    )
    parser.add_argument(
        "--metrics-port",
        metavar="[HOST:]PORT",
        default="",
        help="serve the jobs' metrics for Prometheus at /metrics of this address; 0: any free port",
    )
    parser.add_argument("--console", action="store_true", help="serve a console of the jobs on a free port")
    parser.add_argument(
        "--console-port",
        metavar="[HOST:]PORT",
        default="",
        help="serve the console, with /metrics, at this address",
    )
    _add_common(parser)


def _add_sql(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module=_SHELL)
    parser.add_argument("--help", action="help", help="show this help message and exit")
    parser.add_argument(
        "mode",
        nargs="?",
        choices=("embedded", "gateway"),
        default="embedded",
        help="Flink's names: embedded runs Spark here; gateway opens a session at -h and -p, or at --gateway",
    )
    parser.add_argument(
        "-h",
        dest="host",
        action=_Host,
        nargs="?",
        metavar="HOST",
        default="",
        help="in mode gateway: the gateway's host; without HOST: this help",
    )
    parser.add_argument(
        "-p",
        dest="at_port",
        type=int,
        metavar="PORT",
        default=None,
        help="in mode gateway: the gateway's port (8083)",
    )
    parser.add_argument(
        "--gateway",
        "-e",
        metavar="URL",
        default="",
        help="open a session of this gateway, http://[user:password@]HOST:PORT; no Spark runs here",
    )
    parser.add_argument(
        "-f", "--file", metavar="FILE", default="", help="run this script over the gateway, and exit"
    )
    parser.add_argument("-i", "--init", metavar="FILE", help="run this script first")
    _add_common(parser)


def _add_gateway(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module="tidemill.gateway.start")
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        default=None,
        help="the REST endpoint's port (sql-gateway.endpoint.rest.port; 8083); 0: any free port",
    )
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(spark=True, function="command")
    parser.add_argument(
        "-D",
        dest="options",
        action="append",
        default=[],
        metavar="key=value",
        type=_pair,
        help="an option, also of Spark (spark.*)",
    )
    parser.add_argument(
        "--conf-file",
        metavar="FILE",
        default="",
        help="a file of options, one per line, as in spark-defaults.conf",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        default="",
        help="where Spark runs: local[N], spark://HOST:PORT, yarn, k8s://URL; default: $SPARK_MASTER, "
        "or all cores of this machine",
    )
    parser.add_argument(
        "--py-env",
        metavar="ENV",
        default="",
        help="the workers' Python: an archive (.tar.gz, .zip) to ship to them, or a path on them",
    )
    parser.add_argument(
        "-V",
        dest="variables",
        action="append",
        default=[],
        metavar="NAME=value",
        type=_pair,
        help="the value of ${NAME} in scripts; ${DIR} is the script's folder",
    )


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form key=value")
    return key, value


class _Version(argparse.Action):
    """Reads the version when it is asked for: looking it up costs more than all else here."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        print(f"tidemill {loaded('importlib.metadata').version('tidemill')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
