"""Every plan that EXPLAIN shows is what runs, or says beside the node how it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.goldens.comparer import CASES
from tidemill.errors import TidemillError
from tidemill.physical import nodes as p
from tidemill.physical.explain.differences import differences
from tidemill.physical.identity import Digests
from tidemill.physical.plan import PhysicalPlan
from tidemill.physical.tree import walk
from tidemill.plan import nodes as n
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_result, compile_sink
from tidemill.runtime.tables import make_source
from tidemill.session import planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

STATEFUL = (
    p.GroupAggregate,
    p.GlobalGroupAggregate,
    p.Rank,
    p.SortLimit,
    p.OverAggregate,
    p.Join,
    p.ChangelogNormalize,
)
SCRIPTS = sorted(CASES.glob("*/*.sql"))


def plans(script: str) -> Iterator[tuple[SessionContext, PhysicalPlan]]:
    """The plan of each streaming query and INSERT of a script that can be planned."""
    context = SessionContext()
    for piece in split(script):
        statement = parse_statement(piece.text)
        target = statement.target if isinstance(statement, s.Explain) else statement
        inserts = target.inserts if isinstance(target, s.StatementSet) else [target]
        for part in inserts:
            if not isinstance(part, s.Query | s.Insert):
                execute(statement, context)
                continue
            if context.configuration.get("execution.runtime-mode", "").lower() == "batch":
                continue
            logical = bound(context, part)
            yield context, planning.physical(context, planning.optimized(logical))


def bound(context: SessionContext, part: s.Query | s.Insert) -> n.LogicalNode:
    return planning.bind(context, part) if isinstance(part, s.Query) else planning.bind_insert(context, part)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_stateful_node_runs_or_says_how(path: Path) -> None:
    try:
        for session, plan in plans(path.read_text()):
            check(session, plan)
    except TidemillError as e:
        if e.code == "INTERNAL":
            raise
        pytest.skip(f"has no plan: {str(e)[:60]}")


def check(session: SessionContext, plan: PhysicalPlan) -> None:
    noted = differences(plan.shown, plan.runs)
    context = CompileContext(make_source=make_source, frames={}, zone="UTC", parallelism=2, per_record=False)
    context.survey([plan.runs])
    root = plan.runs
    make = compile_sink if isinstance(root, p.Sink) else compile_result
    compiled(context, lambda: make(root, context, session.configuration))  # type: ignore[arg-type]
    running = {operator.rpartition("-")[2] for operator in context.operators}
    digests = Digests()
    for node in walk(plan.runs):
        if isinstance(node, STATEFUL) and digests.of(node) not in running:
            assert shown_as(node, plan, digests) & set(noted), type(node).__name__
    for node in walk(plan.shown):
        if isinstance(node, p.LocalGroupAggregate | p.IncrementalGroupAggregate | p.IntervalJoin):
            assert id(node) in noted


def shown_as(node: p.PhysicalNode, plan: PhysicalPlan, digests: Digests) -> set[int]:
    """The shown nodes of the kind and the columns of ``node``."""
    return {id(x) for x in walk(plan.shown) if isinstance(x, type(node)) and x.fields == node.fields}
