"""Decides what a job keeps of its state when it starts with another query than the query that left the state.

Operators are compared by their ids, calls and columns of kept rows by theirs, columns of state by name
(``runtime.compile.state_names``). A part of state is

- *kept*;
- *added* with its initial value;
- *complete* at once, if the stored state has all of its parts;
- *converted*, if its type has more values now;
- *dropped*;
- *replaced*, if a column of the result becomes another call, which must be allowed, or if a column of a sink
  shows something else, which is reported;
- *refused*, with the reason, if it would get another meaning:

    SELECT k, SUM(v) FROM t GROUP BY k             what was stored
    SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k   COUNT(*) is added: it counts from now on
    SELECT k, SUM(w) AS w FROM t GROUP BY k        SUM(v) is dropped, SUM(w) added
    SELECT k, SUM(v) FROM t WHERE v > 0 GROUP BY k refused: another filter
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from tidemill.errors import StateError
from tidemill.operators.rows.stored_before import is_mark
from tidemill.physical.identities import RULES
from tidemill.runtime.checkpoint.identity import (
    JobIdentity,
    changed_fact,
    changed_functions,
    difference,
    lost_part,
)
from tidemill.runtime.checkpoint.operator_schema import CallSchema, ColumnSchema, OperatorSchema
from tidemill.state.growing_types import grows
from tidemill.types.widening import family_of, is_wider, kind_of

_OTHER = (
    "Run the query that made it, or start this one in a new directory, without a savepoint. With "
    "'tidemill.evolution' = 'backfill' the query is computed from the beginning of its sources."
)
_LEFT_OUT = (
    "With 'execution.state-recovery.ignore-unclaimed-state' = 'true' the query starts, and state that it "
    "does not need is left out."
)
_NOT_NULL = " NOT NULL"
_OTHER_DIGITS = (
    "; the input takes rows back, and a number that came before comes back by other digits in this type"
)
_TAKEN_BACK = {True: "may be taken back", False: "only come"}
_INVENTED = re.compile(r"EXPR\$(\d+)")
"""The name of a column without one, with its place."""
Part = Callable[..., "Change"]


class Verdict(StrEnum):
    KEPT = "kept"
    ADDED = "added"
    REPLACED = "replaced"
    COMPLETE = "complete"
    CONVERTED = "converted"
    DROPPED = "dropped"
    REFUSED = "refused"
    BACKFILLED = "backfilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``part``: a call, or '' for the whole ``operator``; both for people. ``detail``: why, or with what
    value it begins. ``loses``: state of an operator goes that nothing takes over."""

    operator: str
    part: str
    verdict: Verdict
    detail: str = ""
    loses: bool = False

    def __str__(self) -> str:
        place = f"{self.operator}: {self.part}" if self.part else self.operator
        return f"{place}: {self.verdict}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """``changes``: of all operators; nothing but what is kept if the queries mean the same."""

    changes: tuple[Change, ...]
    is_same: bool

    def check(self, what: str, *, drops: bool = False) -> None:
        """StateError that names ``what`` ("the savepoint 'x'") and the reason if the query cannot have this
        state. ``drops``: operators' state may be left out."""
        refused = [c for c in self.changes if c.verdict is Verdict.REFUSED]
        lost = [c for c in self.changes if c.loses]
        if refused or (lost and not drops):
            why = (refused or lost)[0].detail
            raise StateError(
                f"{what[0].upper()}{what[1:]} belongs to another query ({why})",
                hint=_OTHER if refused else _LEFT_OUT,
            )


def backfilled(found: Evolution) -> Evolution:
    """What becomes of the state if what cannot be taken over as it is comes from the sources' history."""
    computed = (Verdict.ADDED, Verdict.REPLACED, Verdict.REFUSED)
    changes = (
        replace(c, verdict=Verdict.BACKFILLED, loses=False, detail="from the beginning of the sources")
        if c.verdict in computed
        else c
        for c in found.changes
    )
    return replace(found, changes=tuple(changes))


def evolution(stored: JobIdentity, wanted: JobIdentity) -> Evolution:
    """What becomes of the state of ``stored`` under the query ``wanted``, whose names were given by it."""
    if stored.rules < RULES or wanted.rules < RULES:
        return _by_older_rules(stored, wanted)
    changes = [*_facts(stored, wanted), *_operators(stored, wanted), *_rows(stored, wanted)]
    changes += _functions(stored, wanted)
    same = (stored.fingerprint, stored.operators) == (wanted.fingerprint, wanted.operators)
    if not any(change.verdict is Verdict.REFUSED for change in changes):
        told = {change.part for change in changes if change.verdict is Verdict.REPLACED}
        others = [change for text, change in _shown(stored, wanted) if text not in told]
        same = same and not others
        changes += others
    return Evolution(changes=tuple(changes), is_same=same)


def _by_older_rules(stored: JobIdentity, wanted: JobIdentity) -> Evolution:
    """Only the same query, or a part of it."""
    why = difference(stored, wanted)
    if not why:
        return Evolution(changes=(), is_same=True)
    lost = lost_part(stored, wanted)
    verdict = Verdict.REFUSED if lost else Verdict.DROPPED
    change = Change(operator="the job", part="", verdict=verdict, detail=why, loses=not lost)
    return Evolution(changes=(change,), is_same=False)


def _facts(stored: JobIdentity, wanted: JobIdentity) -> Iterator[Change]:
    fact = changed_fact(stored, wanted)
    if fact:
        yield Change(operator="the job", part="", verdict=Verdict.REFUSED, detail=fact)


def _functions(stored: JobIdentity, wanted: JobIdentity) -> Iterator[Change]:
    """What the users' functions were when they made the state is told: their results may be others now."""
    for name in changed_functions(stored, wanted):
        detail = "its code has changed, its version has not"
        yield Change(operator=f"function {name}", part="", verdict=Verdict.KEPT, detail=detail)


def _operators(stored: JobIdentity, wanted: JobIdentity) -> Iterator[Change]:
    for key, layout in wanted.operators.items():
        now, then = wanted.schema[key], stored.schema.get(key)
        if then is None:
            why = _without_state(stored, wanted, now)
            yield Change(operator=now.text, part="", verdict=Verdict.REFUSED, detail=why)
        elif not now.tables and not now.changing:
            same = stored.operators.get(key) == layout
            yield _whole(now, "" if same else f"the state of {now.text} is laid out in another way")
        else:
            yield from _compared(then, now)
    for key, then in stored.schema.items():
        if key not in wanted.operators:
            why = f"it has {then.text}, which this query lacks"
            yield Change(operator=then.text, part="", verdict=Verdict.DROPPED, detail=why, loses=True)


def _without_state(stored: JobIdentity, wanted: JobIdentity, now: OperatorSchema) -> str:
    """Why nothing that is stored is the state of an operator."""
    gone = [x for key, x in stored.schema.items() if x.kind == now.kind and key not in wanted.operators]
    turned = next((x for x in gone if x.keys != now.keys and sorted(x.keys) == sorted(now.keys)), None)
    if turned is not None:
        before, here = (", ".join(map(found.readable, found.keys)) for found in (turned, now))
        return f"it is kept by ({before}), this query needs it by ({here}): rows lie by keys in their order"
    unlike = f"{now.text} has other columns or calls than what is stored, and cannot do without"
    if any(x.rows == now.rows for x in gone):
        return unlike
    if stored.nodes.keys() != wanted.nodes.keys():
        return difference(stored, wanted)
    other = next(iter(gone), None)
    if other is None:
        return f"it lacks {now.text}"
    if other.text == now.text:
        return unlike
    return f"it has {other.text} where this query has {now.text}"


def _whole(operator: OperatorSchema, refused: str = "") -> Change:
    verdict = Verdict.REFUSED if refused else Verdict.KEPT
    return Change(operator=operator.text, part="", verdict=verdict, detail=refused)


def _compared(then: OperatorSchema, now: OperatorSchema) -> Iterator[Change]:
    before = {call.id: call for call in then.calls}
    here = {call.id for call in now.calls}
    gone = [call for call in then.calls if call.id not in here]
    replaced = {call.name: call for call in gone if call.name}
    epochs = {call.born for call in now.calls if call.id not in before}
    added = _added(then, now)
    lacks = (
        (table, name)
        for table, name in _lacks(then, now)
        if name not in added
        and not is_mark(name)
        and not any(_begins(part, epochs) for part in (table, name))
    )
    unlike = _narrower(then, now) or next((_unlike(then, now, *column) for column in lacks), "")
    unlike = _other_rows(then, now) or unlike
    # Windows that keep whole rows keep them for all calls: none has state of its own, but what it has shown.
    parts = (part for table, columns in now.tables.items() for part in (table, *columns))
    apart = bool(unlike) or any(_begins(x, epochs) for x in parts if not x.startswith("#"))
    yield _whole(now, unlike and f"the state of {now.text} is laid out in another way: {unlike}")
    yield from _grown_keys(then, now)
    yield from _columns(then, now)
    for call in now.calls:
        part = partial(Change, operator=now.text, part=call.text)
        stored = before.get(call.id)
        if stored is not None:
            yield _stayed(part, stored, call, retracts=now.retracts)
        elif call.name in replaced:
            yield _replaced(_new(part, call, now, apart), replaced.pop(call.name), call)
        else:
            yield _new(part, call, now, apart)
    for call in gone:
        yield Change(operator=now.text, part=call.text, verdict=Verdict.DROPPED)


def _added(then: OperatorSchema, now: OperatorSchema) -> dict[str, ColumnSchema]:
    """The columns of kept rows that rows stored by the query before lack."""
    before = {column.id for column in then.columns}
    return {column.name: column for column in now.columns if column.id not in before}


def _columns(then: OperatorSchema, now: OperatorSchema) -> Iterator[Change]:
    """The columns of the rows that an operator keeps."""
    before = {column.id: column for column in then.columns}
    for column in now.columns:
        part = partial(Change, operator=now.text, part=column.text)
        known = before.get(column.id)
        if known is None or (column.needed and column.since):
            yield _new_column(part, column, lost=any(now.changing) and not now.finds)
        else:
            yield _same_column(part, known, column, retracts=any(now.changing))
    here = {column.id for column in now.columns}
    for column in then.columns:
        if column.id not in here:
            yield Change(operator=now.text, part=column.text, verdict=Verdict.DROPPED)


def _same_column(part: Part, then: ColumnSchema, now: ColumnSchema, *, retracts: bool) -> Change:
    before, here = (column.type.partition(" *")[0] for column in (then, now))
    changed = f"{then.text} of {before}, now of {here}"
    may_be_null = here.endswith(_NOT_NULL) and not before.endswith(_NOT_NULL)
    if may_be_null or not is_wider(before, here):
        return part(verdict=Verdict.REFUSED, detail=f"it has {changed}")
    if retracts and kind_of(before) != kind_of(here):
        return part(verdict=Verdict.REFUSED, detail=f"it has {changed}{_OTHER_DIGITS}")
    if before.removesuffix(_NOT_NULL) == here.removesuffix(_NOT_NULL):
        return part(verdict=Verdict.KEPT)
    return part(verdict=Verdict.CONVERTED, detail=changed)


def _new_column(part: Part, column: ColumnSchema, *, lost: bool) -> Change:
    """``lost``: a row that is taken back would not be found where it was stored without the column."""
    lacks = f"{column.text} is NULL for rows stored before epoch {column.since}"
    if column.needed:
        return part(verdict=Verdict.REFUSED, detail=f"{lacks}, and rows are ordered by it")
    if lost:
        detail = f"{lacks}, and the input takes rows back, which would not be found"
        return part(verdict=Verdict.REFUSED, detail=detail)
    if column.type.partition(" *")[0].endswith(_NOT_NULL):
        return part(verdict=Verdict.REFUSED, detail=f"{lacks}, and its type is {column.type}")
    return part(verdict=Verdict.ADDED, detail=f"is NULL for rows stored before epoch {column.since}")


def _other_rows(then: OperatorSchema, now: OperatorSchema) -> str:
    """Why rows that an operator has kept are not those that it would have kept as the query is now."""
    if not now.changing:
        return ""
    if then.changing != now.changing:
        before, here = (_TAKEN_BACK[any(found.changing)] for found in (then, now))
        return f"rows of its input {before} then, and {here} now"
    if then.keys != now.keys:
        before, here = (", ".join(map(found.readable, found.keys)) for found in (then, now))
        return f"it is kept by ({before}), the query needs it by ({here})"
    if then.limit and (now.limit > then.limit or not now.limit):
        wanted = f"the query shows {now.limit}" if now.limit else "the query shows all"
        return f"it has the first {then.limit} rows of a key, {wanted}: those beyond were not kept"
    return ""


def _stayed(part: Part, then: CallSchema, now: CallSchema, *, retracts: bool) -> Change:
    if (then.type, then.arg_types) == (now.type, now.arg_types):
        return part(verdict=Verdict.KEPT)
    changed = f"{then.text} of {', '.join(then.arg_types)}, now of {', '.join(now.arg_types)}"
    pairs = list(zip(then.arg_types, now.arg_types, strict=True))
    # Of the result nothing is stored but sums, which keep digits that their type has no room for.
    sums = then.type != now.type and family_of(then.type) == family_of(now.type) == "DECIMAL"
    if not all(is_wider(a, b) for a, b in pairs) or not (sums or is_wider(then.type, now.type)):
        return part(verdict=Verdict.REFUSED, detail=f"it has {changed}")
    if retracts and any(kind_of(a) != kind_of(b) for a, b in pairs):
        return part(verdict=Verdict.REFUSED, detail=f"it has {changed}{_OTHER_DIGITS}")
    return part(verdict=Verdict.CONVERTED, detail=changed)


def _replaced(found: Change, then: CallSchema, now: CallSchema) -> Change:
    """A column of the result that meant something else: it may be more than the call."""
    if found.verdict is Verdict.REFUSED:
        return found
    before, here = then.text, now.text
    if before == here and then.arg_types != now.arg_types:
        before, here = (f"{call.text} of {', '.join(call.arg_types)}" for call in (then, now))
    elif before == here:
        here = f"another {here}"
    begins = f"is complete {found.detail}" if found.verdict is Verdict.COMPLETE else found.detail
    invented = _INVENTED.fullmatch(now.name)
    name = f"column {int(invented[1]) + 1} of the SELECT list" if invented else now.name
    detail = f"{name} was {before}, now it is {here}; it {begins}"
    return replace(found, verdict=Verdict.REPLACED, detail=detail, loses=True)


def _new(part: Part, call: CallSchema, now: OperatorSchema, apart: bool) -> Change:
    """``apart``: calls that begin now have state of their own."""
    if call.since != call.born or not apart:
        return part(verdict=Verdict.COMPLETE, detail="from state that is there")
    if now.retracts:
        why = f"{call.text} of {now.text} is new, and the input takes rows back that it would never have seen"
        return part(verdict=Verdict.REFUSED, detail=why)
    return part(verdict=Verdict.ADDED, detail=f"begins with {call.initial} in epoch {call.since}")


def _begins(name: str, epochs: set[int]) -> bool:
    """Whether a table or column of state belongs to calls that began in one of the ``epochs``. The epoch is
    at the end of its name, after the names of columns, which may contain any text."""
    said = name.rpartition("#")[2]
    return any(f" SINCE {epoch}" in said for epoch in epochs)


def _lacks(then: OperatorSchema, now: OperatorSchema) -> Iterator[tuple[str, str]]:
    """The columns, by table, that the query needs and state does not have, or has as a type that does not
    grow to the query's."""
    for table, columns in now.tables.items():
        held = then.tables.get(table, {})
        for name, kind in columns.items():
            found = held.get(name)
            if found != kind and not grows(found or "", kind):
                yield table, name


def _grown_keys(then: OperatorSchema, now: OperatorSchema) -> Iterator[Change]:
    carried = {column.name for column in now.columns}
    for key in now.keys:
        before, here = (types.get(key, "").removesuffix(_NOT_NULL) for types in (then.types, now.types))
        if key not in carried and before and here and before != here:
            detail = f"of {before}, now of {here}"
            yield Change(
                operator=now.text, part=f"key {now.readable(key)}", verdict=Verdict.CONVERTED, detail=detail
            )


def _narrower(then: OperatorSchema, now: OperatorSchema) -> str:
    """The first key that may have values which its type has no longer."""
    for key in now.keys:
        before, here = then.types.get(key), now.types.get(key)
        if before is not None and here is not None and not is_wider(before, here):
            return f"key '{now.readable(key)}' is {before}, the query needs {here}"
    return ""


def _unlike(then: OperatorSchema, now: OperatorSchema, table: str, name: str) -> str:
    if table not in then.tables:
        return f"it has no table '{now.readable(table)}'"
    found = then.tables[table].get(name, "missing")
    return f"column '{now.readable(name)}' is {found}, the query needs {now.tables[table][name]}"


def _rows(stored: JobIdentity, wanted: JobIdentity) -> Iterator[Change]:
    """Rows that reach a sink without an operator between: other rows are another table."""
    for sink, rows in wanted.direct:
        if [sink, rows] not in stored.direct:
            why = difference(stored, wanted)
            yield Change(operator=f"the rows of {sink}", part="", verdict=Verdict.REFUSED, detail=why)


def _shown(stored: JobIdentity, wanted: JobIdentity) -> Iterator[tuple[str, Change]]:
    """Columns of sinks that show something else than before, each with what it shows now."""
    for sink, columns in wanted.shown.items():
        for name, now in columns.items():
            then = stored.shown.get(sink, {}).get(name, {})
            gone, new = ([a[key] for key in a if key not in b] for a, b in ((then, now), (now, then)))
            for before, here in zip(gone, new, strict=False):
                detail = f"it was {before}, now it is {'another ' * (before == here)}{here}"
                part = partial(Change, operator=f"the rows of {sink}", part=f"column {name}")
                yield here, part(verdict=Verdict.REPLACED, detail=detail)
