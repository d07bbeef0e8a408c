"""What EXPLAIN shows of a stream is what runs, or says beside the node how it runs.

For every statement of the recorded scripts, and of some that reach what these do not, the exec graph is
compared with the plan: the operators, what each reads, what has a local phase, what runs once for several;
each is shown so, or named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest

from tests.goldens.comparer import CASES
from tidemill.errors import TidemillError
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_reuse import shared_part
from tidemill.physical.aggregates.salted_distinct import spread_part
from tidemill.physical.digests import table_digest
from tidemill.physical.explain.differences import Pair, Runs, differences, pairs
from tidemill.physical.explain.text import physical_plan
from tidemill.physical.explain.view import nodes as v
from tidemill.physical.joins.by_pairs import decides_by_pairs
from tidemill.physical.traits.event_time import reads_watermark, waits_for_arrival
from tidemill.physical.tree import walk
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.execution_text import combined
from tidemill.runtime.job_start import unread_job
from tidemill.session import execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

TABLES = """
CREATE TABLE a (k INT, j INT, v BIGINT) WITH ('connector'='datagen');
CREATE TABLE b (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector'='filesystem', 'path'='/b', 'format'='debezium-json');
CREATE TABLE s (k INT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector'='jdbc', 'url'='jdbc:postgresql://nowhere/d', 'table-name'='s');
CREATE TABLE e (k INT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector'='datagen');
CREATE VIEW w AS SELECT * FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
CREATE VIEW counts AS SELECT k, COUNT(*) AS n FROM a GROUP BY k;
SET 'table.exec.sink.require-on-conflict' = 'false';
"""
MINI_BATCH = (
    "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'table.exec.mini-batch.allow-latency' = '1 s';"
)
OWN = {
    "rows that only come, out of several tasks, into an upsert sink": (
        "INSERT INTO s SELECT k, v FROM a UNION ALL SELECT j, v FROM a"
    ),
    "a view that two INSERTs and a self-join read": (
        "EXECUTE STATEMENT SET BEGIN INSERT INTO s SELECT k, n FROM counts; INSERT INTO s "
        "SELECT x.k, y.n FROM counts x JOIN counts y ON x.k = y.k; END"
    ),
    "a local phase, and none above what has an order": (
        f"{MINI_BATCH} SELECT k, SUM(v) AS v FROM a GROUP BY k; "
        "SELECT n, LAST_VALUE(k) AS k FROM counts GROUP BY n; "
        "SELECT k, COUNT(DISTINCT v) AS c FROM a GROUP BY k"
    ),
    "distinct values that keys share": (
        "SELECT k, COUNT(DISTINCT v) AS c FROM a WHERE k IN (1, 2, 3) GROUP BY k; "
        f"{MINI_BATCH} SELECT k, j, COUNT(DISTINCT v) AS c FROM a WHERE k = 1 OR k = 2 GROUP BY k, j"
    ),
    "rows looked up, then counted": (
        "SELECT x.k, COUNT(*) AS c FROM (SELECT *, PROCTIME() AS now FROM a) AS x "
        "LEFT JOIN s FOR SYSTEM_TIME AS OF x.now ON x.k = s.k AND x.v = s.n GROUP BY x.k"
    ),
    "conditions that no kernel computes": (
        "SELECT x.k, y.n FROM a x LEFT JOIN b y ON x.k = y.id AND MOD(x.v + y.n, 3) = 0; "
        "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE MOD(a.v + b.n, 3) = 0); "
        "SELECT x.k, y.k FROM e x FULL JOIN e y ON x.k = y.k AND MOD(x.v + y.v, 3) = 0 "
        "AND x.ts BETWEEN y.ts - INTERVAL '1' SECOND AND y.ts; "
        "SELECT x.k, y.k FROM w x RIGHT JOIN w y ON x.window_start = y.window_start "
        "AND x.window_end = y.window_end AND MOD(x.v + y.v, 3) = 0"
    ),
    "a source of updates that a join reads": "SELECT * FROM a JOIN b ON a.k = b.id WHERE a.v > 3",
}
SCRIPTS = {f"{p.parent.name}/{p.stem}": p.read_text() for p in sorted(CASES.glob("*/*.sql"))}
SCRIPTS |= {name: TABLES + text for name, text in OWN.items()}
SOURCES = (p.TableSourceScan, p.Values, p.DataFrameScan)
STATELESS = (
    p.Calc,
    p.WatermarkAssigner,
    p.MiniBatchAssigner,
    p.Exchange,
    p.Expand,
    p.AggregatePart,
    p.Union,
    p.DropUpdateBefore,
    p.WindowTableFunction,
    p.Correlate,
    p.LookupJoin,
    p.ToChangelog,
    p.FromChangelog,
)
"""What the frames between operators do; every other node is an operator, or named as a part of one."""
WRITER = "by the writer of the exchange, while it makes rows fewer"
PARTS = (WRITER, "by the aggregation above", "with the one above")
LAST = "of each key the last row of an epoch"


@dataclass(frozen=True)
class Job:
    """One statement: its plans with Flink's view of each, the exec nodes that its outputs get, what was
    compiled with them."""

    plans: list[tuple[p.PhysicalNode, p.PhysicalNode]]
    outputs: dict[str, g.ExecNode]
    context: CompileContext

    @cached_property
    def pairs(self) -> list[Pair]:
        return [pair for view, runs in self.plans for pair in pairs(view, runs)]

    @cached_property
    def noted(self) -> Runs:
        fewer = combined(self.outputs, self.context)
        return {k: x for plan in self.plans for k, x in differences(*plan, fewer).items()}

    def digest(self, node: p.PhysicalNode) -> str:
        return self.context.digests.of(node)

    def is_operator(self, node: p.PhysicalNode) -> bool:
        keeps = not isinstance(node, STATELESS) or reads_watermark(node) or waits_for_arrival(node)
        return keeps and self.digest(node) in self.context.sub_plans.values()

    def note(self, node: p.PhysicalNode) -> str:
        return self.noted.get(id(node), "")


def jobs(script: str) -> Iterator[Job]:
    """Each query, INSERT and statement set of a script that streams, and what EXPLAIN asks about; statements
    that are refused are passed over."""
    session = SessionContext()
    for piece in split(script):
        try:
            statement = parse_statement(piece.text)
            target = statement.target if isinstance(statement, s.Explain) else statement
            parts = target.inserts if isinstance(target, s.StatementSet) else (target,)
            queries = [part for part in parts if isinstance(part, s.Query | s.Insert)]
            if not queries:
                execute(statement, session)
            elif not execution.is_batch(session):
                yield job(session, queries)
        except TidemillError as e:
            if e.code == "INTERNAL":
                raise


def job(session: SessionContext, parts: list[s.Query | s.Insert]) -> Job:
    bound = [
        planning.bind(session, part) if isinstance(part, s.Query) else planning.bind_insert(session, part)
        for part in parts
    ]
    optimized = [planning.optimized(logical) for logical in bound]
    roots = planning.physical_job(session.configuration, optimized)
    made = unread_job(roots, session.configuration, frames=session.frames, zone=session.time_zone)
    views = planning.flink_views(session.configuration, optimized)
    return Job(list(zip(views, roots, strict=True)), *made)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_what_is_shown_runs(script: str) -> None:
    found = list(jobs(script))
    for each in found:
        check_operators(each)
        check_inputs(each)
        check_local_phases(each)
        check_reuse(each)
        check_updates_dropped(each)
    if not found:
        pytest.skip("plans no stream")


def check_operators(job: Job) -> None:
    """What keeps state is an operator, or named as part of one; no operator runs that is not shown."""
    for pair in job.pairs:
        if isinstance(pair.runs, p.Sink):
            assert isinstance(pair.shown, p.Sink)
            named = "upsertMaterialize=[true]" in job.note(pair.shown) or LAST in job.note(pair.shown)
            shown = named or (pair.shown.materialize and "upsertMaterialize" not in job.note(pair.shown))
            assert job.is_operator(pair.runs) == shown
        elif not isinstance(pair.runs, (*STATELESS, *SOURCES)):
            is_part = any(part in job.note(pair.shown) for part in PARTS)
            assert job.is_operator(pair.runs) != is_part, type(pair.runs).__name__
    planned = {job.digest(pair.runs) for pair in job.pairs}
    planned |= {job.digest(part) for pair in job.pairs for part in parts_of(pair.runs)}
    planned |= {job.digest(part) for pair in job.pairs for part in joins_of(pair)}
    assert planned >= set(job.context.sub_plans.values())


def parts_of(node: p.PhysicalNode) -> list[p.PhysicalNode]:
    """What is one aggregation, and so is shown, is two where keys share their distinct values, or where a
    window's are counted by buckets of them."""
    spread = spread_part(node)
    if spread is not None:
        return [spread]
    if not isinstance(node, p.GroupAggregate) or node.reuse is None:
        return []
    return [shared_part(node)]


def joins_of(pair: Pair) -> list[p.PhysicalNode]:
    """What is shown as one join is several where Spark judges the pairs."""
    if not decides_by_pairs(pair.shown):
        return []
    return [node for node in walk(pair.runs) if isinstance(node, p.Join)]


def check_inputs(job: Job) -> None:
    """Each operator and each output reads of what the nodes below it are."""
    planned: dict[str, set[str]] = defaultdict(set)
    running: dict[str, set[str]] = defaultdict(set)
    for (_, top), output in zip(job.plans, job.outputs.values(), strict=True):
        assert read_of(output, job) == made_by(top, job)
        for node in walk(top):
            if job.is_operator(node):
                planned[job.digest(node)] |= below(node, job)
        for made in output.walk():
            if isinstance(made, g.Keyed):
                inputs = [read_of(i, job) for i in made.inputs]
                own = job.context.sub_plans[made.operator]
                # Two operators may be one node, one on the other.
                running[own] |= set().union(*inputs) - {own}
    assert running == planned


def below(node: p.PhysicalNode, job: Job) -> set[str]:
    return {name for child in node.inputs for name in made_by(child, job)}


def made_by(node: p.PhysicalNode, job: Job) -> set[str]:
    """The sources and operators that the rows of ``node`` come from."""
    if isinstance(node, p.TableSourceScan):
        return {f"scan-{table_digest(node.table, dict(node.options))}"}
    if isinstance(node, p.Values):
        return {f"values-{job.digest(node)}"}
    if isinstance(node, p.DataFrameScan):
        return {f"frame-{node.key}"}
    return {job.digest(node)} if job.is_operator(node) else below(node, job)


def read_of(node: g.ExecNode, job: Job) -> set[str]:
    if isinstance(node, g.Read):
        return {node.source}
    if isinstance(node, g.Keyed):
        return {job.context.sub_plans[node.operator]}
    return {name for child in node.inputs for name in read_of(child, job)}


def check_local_phases(job: Job) -> None:
    """The local aggregate that is shown over an aggregation's input runs, or is named as none."""
    made = [node for output in job.outputs.values() for node in output.walk() if isinstance(node, g.Keyed)]
    local = {job.context.sub_plans[node.operator]: node.local for node in made}
    for pair in job.pairs:
        if isinstance(pair.runs, p.GroupAggregate | p.WindowAggregate):
            counting = spread_part(pair.runs) or pair.runs
            for phase in list(v.phases(pair.shown))[-1:]:
                assert not isinstance(phase, v.LocalGroupAggregate | v.LocalWindowAggregate) or (
                    (job.note(phase) == WRITER) == local[job.digest(counting)]
                )


def check_reuse(job: Job) -> None:
    """What is shown once, and referred to, is one plan that runs."""
    alike: dict[str, set[str]] = defaultdict(set)
    for pair in job.pairs:
        if not isinstance(pair.shown, p.Sink) and isinstance(pair.shown, type(pair.runs)):
            alike[physical_plan(pair.shown, changelog_mode=True)].add(job.digest(pair.runs))
    assert all(len(digests) == 1 for digests in alike.values())


def check_updates_dropped(job: Job) -> None:
    """DropUpdateBefore drops, or says that it does not."""
    for pair in job.pairs:
        drops = any(isinstance(x, p.DropUpdateBefore) for x in pair.passing_runs)
        for node in pair.passing:
            assert not isinstance(node, p.DropUpdateBefore) or (job.note(node) == "") == drops
