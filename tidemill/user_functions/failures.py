"""What went wrong inside a user's function, or with what it gave, as an ExecutionError that names it."""

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
    """Whatever the user's code raises is an ExecutionError with the traceback's last frames.

    SystemExit and the like too: they would end the worker without a word about the function.
    """
    try:
        yield
    except TidemillError:
        raise
    except BaseException as e:
        raise _failed(name, e) from e


def _failed(name: str, error: BaseException) -> ExecutionError:
    found = traceback.TracebackException.from_exception(error)
    theirs = [f for f in found.stack if not f.filename.startswith(_OWN)]
    shown = traceback.StackSummary.from_list(theirs[-_FRAMES:]).format()
    said = "".join(found.format_exception_only()).strip()
    return ExecutionError(f"The function {name} failed: {said}\n{''.join(shown).rstrip()}".rstrip())


def stopped_short(name: str) -> ExecutionError:
    """The function raised StopIteration, which ends the loop that calls it without a trace."""
    return ExecutionError(f"The function {name} failed: StopIteration")


def wrong_result(name: str, expected: object, found: object) -> ExecutionError:
    """The function gave something else than it declared."""
    return ExecutionError(f"The function {name} returned {found}; expected {expected}")
