"""Errors inside a user's function, or in its result, as an ExecutionError that names the function."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemill.errors import ExecutionError, TidemillError

_OWN = str(Path(__file__).resolve().parent)
_FRAMES = 3


@contextmanager
def user_code(name: str) -> Iterator[None]:
    """Turns every exception of the user's code into an ExecutionError with the traceback's last frames.

    This includes SystemExit, which would end the worker without naming the function.
    """
    try:
        yield
    except TidemillError:
        raise
    except BaseException as e:
        raise _failed(name, e) from e


def _failed(name: str, error: BaseException) -> ExecutionError:
    details = traceback.TracebackException.from_exception(error)
    theirs = [f for f in details.stack if not f.filename.startswith(_OWN)]
    frames = traceback.StackSummary.from_list(theirs[-_FRAMES:]).format()
    message = "".join(details.format_exception_only()).strip()
    return ExecutionError(f"The function {name} failed: {message}\n{''.join(frames).rstrip()}".rstrip())


def stopped_short(name: str) -> ExecutionError:
    """The function raised StopIteration, which ends the loop that calls it without a trace."""
    return ExecutionError(f"The function {name} failed: StopIteration")


def wrong_result(name: str, expected: object, actual: object) -> ExecutionError:
    """The function gave something else than it declared."""
    return ExecutionError(f"The function {name} returned {actual}; expected {expected}")
