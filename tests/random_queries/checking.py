"""Compares both answers of a query; a failure is made smaller and told so that it can be pasted and run."""

from __future__ import annotations

import itertools
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.random_queries.answers import Data, Stream, batch_answer, sink_ddl
from tests.random_queries.case import REPEATS, Case, Query, Run, stored_columns
from tests.random_queries.relation import Relation
from tests.random_queries.tables import Table
from tests.runtime.running import Row
from tidemill.errors import ExecutionError, NotSupportedError

ATTEMPTS = 60
"""How many runs a failure may cost to be made smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    tables: tuple[Table, ...]
    query: Query
    reason: str

    @property
    def kind(self) -> str:
        """A smaller failure must be of the same kind."""
        return self.reason.split("\n", 1)[0].split("(")[0].split(":")[0]


class Checker:
    """Checks queries in folders below ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()

    def case(self, case: Case) -> list[Failure]:
        """The queries of the case that fail; their streams run side by side."""
        data = self._data(case.tables)
        begun = [(q, self._begin(data, q)) for q in case.queries]
        failures = []
        for query, stream in begun:
            reason = stream if isinstance(stream, str) else self._difference(data, query, stream)
            if reason:
                failures.append(Failure(tables=case.tables, query=query, reason=reason))
        return failures

    def query(self, tables: tuple[Table, ...], query: Query) -> Failure | None:
        data = self._data(tables)
        stream = self._begin(data, query)
        reason = stream if isinstance(stream, str) else self._difference(data, query, stream)
        return Failure(tables=tables, query=query, reason=reason) if reason else None

    def smaller(self, failure: Failure) -> Failure:
        """The failure with as little of the query, the cuts and the data as still fails alike."""
        tried: set[str] = set()
        found = True
        while found:
            found = False
            for tables, query in _smaller(failure):
                attempt = repr((tables, query))
                if attempt in tried:
                    continue
                if len(tried) == ATTEMPTS:
                    return failure
                tried.add(attempt)
                other = self.query(tables, query)
                if other is not None and other.kind == failure.kind:
                    failure, found = other, True
                    break
        return failure

    def _data(self, tables: tuple[Table, ...]) -> Data:
        return Data(folder=self._folder(), tables=tables).write()

    def _folder(self) -> Path:
        return self._root / str(next(self._numbers))

    def _begin(self, data: Data, query: Query) -> Stream | str:
        try:
            return Stream(data=data, query=query, checkpoint=self._folder()).start()
        except Exception as e:
            return _told(e)

    def _expected(self, data: Data, query: Query) -> Counter[Row]:
        """What a batch answers; which of the rows that meet stays, only another stream tells."""
        if not query.other:
            return batch_answer(data, query.query)
        return Stream(data=data, query=query.at_once, checkpoint=self._folder()).start().answer()

    def _difference(self, data: Data, query: Query, stream: Stream) -> str:
        """Why the answers differ; '' where they do not."""
        try:
            streamed = _outcome(stream.answer)
            expected = _outcome(lambda: self._expected(data, query))
        except (Exception, AssertionError) as e:
            return _told(e)
        if isinstance(streamed, str) or isinstance(expected, str):
            return "" if streamed == expected else f"streamed: {streamed}; expected: {expected}"
        if query.limit >= 0:
            right = streamed <= expected and streamed.total() == min(query.limit, expected.total())
        else:
            right = streamed == expected
        if right:
            return ""
        more = [f"  {'+' * n} {row}" for row, n in (streamed - expected).items()]
        less = [f"  {'-' * n} {row}" for row, n in (expected - streamed).items()]
        other = "in one epoch" if query.other else "in batch"
        return "\n".join([f"answers differ (+ only streamed, - only {other})", *more[:10], *less[:10]])


def _with(query: Query, inner: Relation) -> Query:
    """The query of a relation inside."""
    other = stored_columns(inner)[:1] if query.other else ()
    return replace(query, relation=inner, limit=-1, other=other, sink=query.sink and bool(other or inner.key))


def _outcome(answer: Callable[[], Counter[Row]]) -> Counter[Row] | str:
    """The answer, or the error of a NULL in a NOT NULL column, as of an average that overflows. Flink raises
    the same error in both modes."""
    try:
        return answer()
    except ExecutionError as e:
        if "a null value is being written into it" not in str(e):
            raise
        return str(e)


def _told(error: BaseException) -> str:
    if isinstance(error, NotSupportedError):
        return f"{type(error).__name__}: {error}"
    text = "".join(traceback.format_exception(error))
    return f"{type(error).__name__}: {str(error)[:3000]}\n{text[-4000:]}"


def _smaller(failure: Failure) -> Iterator[tuple[tuple[Table, ...], Query]]:
    """Less of it, the biggest steps first."""
    tables, query = failure.tables, failure.query
    if len(_read(failure)) < len(tables):
        yield _read(failure), query
    for inner in query.relation.walk():
        if inner is not query.relation and inner.inputs:
            yield tables, _with(query, inner)
    if len(query.runs) > 1:
        yield tables, replace(query, runs=query.runs[1:])
    if query.runs[-1].rows < 100:
        yield tables, replace(query, runs=(Run(rows=100, epochs=0),))
    for key in query.options if len(query.options) > 1 else ():
        if key != REPEATS:
            yield tables, replace(query, options={k: v for k, v in query.options.items() if k != key})
    for place, table in enumerate(tables):
        for chains in _portions(table.chains):
            yield (*tables[:place], table.without(chains), *tables[place + 1 :]), query


def _read(failure: Failure) -> tuple[Table, ...]:
    """The tables that the query reads."""
    return tuple(t for t in failure.tables if f"{t.name} " in failure.query.text)


def _portions(chains: list[int]) -> Iterator[set[int]]:
    """All, halves, quarters, single ones."""
    size = len(chains)
    while size:
        yield from (set(chains[n : n + size]) for n in range(0, len(chains), size))
        size //= 2


def report(case: Case, failure: Failure) -> str:
    """A script to paste, and what is wrong with its answer."""
    lines = [f"seed {case.seed}: {failure.reason}", "", "mkdir -p /tmp/failure"]
    used = _read(failure)
    for table in used:
        for end, content in (("changes", table.changelog_lines()), ("rows", table.final_lines())):
            lines += [f"cat > /tmp/failure/{table.name}.{end} <<'END'", *content, "END"]
    settings = {**failure.query.options, "tidemill.epoch.max-rows": str(failure.query.runs[-1].rows)}
    lines += [f"SET '{key}' = '{value}';" for key, value in settings.items()]
    lines += [f"-- stopped and resumed: {failure.query.runs}"] if len(failure.query.runs) > 1 else []
    for changelog, end in ((True, "changes"), (False, "rows")):
        comment = "" if changelog else "-- batch: "
        made = (t.ddl(Path(f"/tmp/failure/{t.name}.{end}"), changelog=changelog) for t in used)
        lines += [f"{comment}{statement};" for statements in made for statement in statements]
    if failure.query.sink:
        lines.append(sink_ddl(failure.query, {"connector": "print"}) + ";")
    return "\n".join([*lines, failure.query.text + ";"])
