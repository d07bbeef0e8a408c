"""Names and texts of the accumulators that a local phase sends to a global phase.

``AVG(n)`` keeps ``(sum$0, count$1)``; a distinct call works on ``distinct$0``, which it shares with the
other calls over the same columns; under retraction SUM also counts, and some call must count rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.operators.aggregates.registry import declared
from tidemill.physical.explain.printer import Printer
from tidemill.plan.expressions import AggregateCall


@dataclass(frozen=True, slots=True)
class Accumulators:
    """Texts of one aggregation's two phases.

    ``local``: calls as the local phase shows them, bookkeeping included. ``merged``: the calls as a
    later phase shows them, without names. ``names``: the accumulator of each call.
    """

    local: tuple[str, ...]
    merged: tuple[str, ...]
    names: tuple[str, ...]


def accumulators(calls: Sequence[AggregateCall], printer: Printer, *, retract: bool) -> Accumulators:
    suffix = "_RETRACT" if retract else ""
    distinct: dict[str, str] = {}
    local, merged, names = [], [], []
    used = 0
    for call in calls:
        parts = _parts(call, retract)
        name = _joined([f"{part}${used + i}" for i, part in enumerate(parts)])
        used += len(parts)
        shared = _shared(call, printer, distinct)
        args = printer.columns(call.args) or "*"
        filtered = "" if call.filter is None else f" FILTER {printer.column(call.filter)}"
        local.append(f"{call.function}{suffix}({shared}{args}){filtered} AS {name}")
        merged.append(f"{call.function}{suffix}({shared}{name})")
        names.append(name)
    if retract and not any(_counts_rows(c) for c in calls):
        local.append(f"COUNT_RETRACT(*) AS count1${used}")
    local += [f"DISTINCT({columns}) AS {name}" for columns, name in distinct.items()]
    return Accumulators(tuple(local), tuple(merged), tuple(names))


def _counts_rows(call: AggregateCall) -> bool:
    return call.function == "COUNT" and not call.args and call.filter is None


def _parts(call: AggregateCall, retract: bool) -> tuple[str, ...]:
    if call.function == "COUNT" and not call.args:
        return ("count1",)
    function = declared(call.function)
    if function is None:
        return (call.function.lower(),)
    return function.phases.retract_buffers if retract else function.phases.buffers


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _shared(call: AggregateCall, printer: Printer, distinct: dict[str, str]) -> str:
    if not call.distinct:
        return ""
    name = distinct.setdefault(printer.columns(call.args), f"distinct${len(distinct)}")
    return f"{name} "
