"""How a batch job runs: first in a fast form that may fail although the query is right, then in a slower form
that does not; with pipelined exchanges if they are enabled and possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tidemill.config.batch_options import BLOCKING, SHUFFLE_MODE
from tidemill.connectors.grouping import UNLIKE
from tidemill.errors import ExecutionError, LostDriverError, LostProcessError
from tidemill.functions.decimal_sums import RAN_OVER
from tidemill.runtime.events import ExchangesBlocked
from tidemill.runtime.job.recording import Seen
from tidemill.runtime.job.request import JobRequest
from tidemill.runtime.spark.failures import SENT_TOO_MUCH, full_text, translated
from tidemill.runtime.spark.job_groups import was_given_up
from tidemill.spark_internals.pipelined import NothingExchanged, NotPipelined, why_not

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Strategy:
    """``quick``: the job may fail without need; ``sends``: sides of its joins may be sent to every task;
    ``pipes``: its exchanges are pipelined."""

    quick: bool
    sends: bool = True
    pipes: bool = False


AT_ONCE, SURELY, UNSENT = Strategy(quick=True), Strategy(quick=False), Strategy(quick=False, sends=False)
PIPELINED = Strategy(quick=True, pipes=True)


def run_with_fallback(job: Callable[[Strategy], Found], request: JobRequest, seen: Seen) -> Found:
    """What a job gives with pipelined exchanges if that is asked for and can be, else with blocking ones."""
    if not asks_for_pipes(request):
        return _blocking(job)
    try:
        return job(PIPELINED)
    except LostDriverError:
        raise
    except (NotPipelined, LostProcessError) as e:
        if not (isinstance(e, NothingExchanged) or was_given_up(request.group)):
            _tell_blocked(e, request, seen)
    except ExecutionError as e:
        if _other_strategy(e) is None:
            raise
    return _blocking(job)


def _tell_blocked(error: Exception, request: JobRequest, seen: Seen) -> None:
    reason = str(error) if isinstance(error, NotPipelined) else "a process of Spark's was lost"
    blocked = ExchangesBlocked(job_id=request.name, reason=reason)
    seen.notes.append(blocked.text)
    request.on_event(blocked)


def _blocking(job: Callable[[Strategy], Found]) -> Found:
    """The result of the job's fast form. If a sum overflowed, a side of a join was too large to be broadcast,
    or a database has values that it cannot aggregate as Tidemill does, the result of a slower form."""
    try:
        return job(AT_ONCE)
    except ExecutionError as e:
        again = _other_strategy(e)
        if again is None:
            raise
    return job(again)


def _other_strategy(error: ExecutionError) -> Strategy | None:
    return next((strategy for text, strategy in _AGAIN.items() if text in str(error)), None)


_AGAIN = {RAN_OVER: SURELY, UNLIKE: SURELY, SENT_TOO_MUCH: UNSENT}


def asks_for_pipes(request: JobRequest) -> bool:
    return request.config.read(SHUFFLE_MODE).upper() != BLOCKING


def failure_of(error: Exception, strategy: Strategy) -> Exception:
    """What ``error`` of Spark's stands for."""
    if isinstance(error, NotPipelined):
        return error
    reason = why_not(full_text(error)) if strategy.pipes else ""
    return NotPipelined(reason) if reason else translated(error, batch=True)
