"""The command line: ``tidemill run FILE...`` and ``tidemill sql``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from tidemill.client import run, shell
from tidemill.errors import TidemillError


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where a statement failed, 2 for a wrong command line."""
    parsed = _parser().parse_args(arguments)
    try:
        status: int = parsed.command(parsed)
    except TidemillError as e:
        sys.stderr.write(f"{e}\n")
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidemill", description="Flink SQL on Spark.")
    parser.add_argument("--version", action="version", version=f"tidemill {version('tidemill')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="run SQL scripts", description="Runs SQL scripts in order."))
    _add_sql(commands.add_parser("sql", help="an interactive shell", description="An interactive shell."))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_run)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="SQL scripts; each gets a session of its own"
    )
    parser.add_argument(
        "-i",
        "--init",
        action="append",
        default=[],
        metavar="FILE",
        help="run this script first in each session; may be given several times",
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
    _add_common(parser)


def _add_sql(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_sql)
    parser.add_argument("-i", "--init", metavar="FILE", help="run this script first")
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-D", dest="options", action="append", default=[], metavar="key=value", type=_pair, help="an option"
    )
    parser.add_argument(
        "-V",
        dest="variables",
        action="append",
        default=[],
        metavar="NAME=value",
        type=_pair,
        help="${NAME} in scripts; ${DIR} is the script's own folder",
    )


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form key=value")
    return key, value


def _run(parsed: argparse.Namespace) -> int:
    return run.run_files(
        run.RunRequest(
            files=tuple(parsed.files),
            init=tuple(parsed.init),
            json=parsed.format == "json",
            options=dict(parsed.options),
            variables=dict(parsed.variables),
            checkpoint_directory=parsed.checkpoint_dir,
        )
    )


def _sql(parsed: argparse.Namespace) -> int:
    return shell.run_shell(dict(parsed.options), dict(parsed.variables), parsed.init)


if __name__ == "__main__":
    sys.exit(main())
