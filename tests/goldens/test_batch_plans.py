"""Every operator that EXPLAIN shows of a recorded batch query is a piece of its frame, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.goldens.comparer import CASES
from tests.session.environments import new_session
from tidemill.client.script import read_script
from tidemill.errors import TidemillError
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.slices import by_slices
from tidemill.runtime.spark.batch_frames.frames import BatchFrames
from tidemill.runtime.spark.batch_frames.relation import Relation
from tidemill.session import execution, planning
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.splitter import split

SCRIPTS = [path for path in sorted(CASES.glob("*/*.sql")) if "'batch'" in path.read_text().lower()]
Framed = list[tuple[BatchFrames, b.BatchNode]]


@pytest.fixture
def framed(monkeypatch: pytest.MonkeyPatch) -> Framed:
    """The nodes that a frame was asked for, in order; the first is the plan's root."""
    asked: Framed = []
    plain = BatchFrames.rows

    def rows(self: BatchFrames, node: b.BatchNode, sequenced: bool = False) -> Relation:
        asked.append((self, node))
        return plain(self, node, sequenced)

    monkeypatch.setattr(BatchFrames, "rows", rows)
    return asked


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_is_shown_is_framed(path: Path, spark: SparkSession, framed: Framed) -> None:
    queries = 0
    context = new_session().context
    for piece in split(read_script(str(path), {})):
        try:
            queries += framed_query(parse_statement(piece.text), context, framed)
        except TidemillError as e:
            if e.code == "INTERNAL":
                raise
    if not queries:
        pytest.skip("has no batch query that is planned")


def framed_query(statement: s.Statement, context: SessionContext, framed: Framed) -> bool:
    query = statement.target if isinstance(statement, s.Explain) else statement
    if not isinstance(query, s.Query) or not execution.is_batch(context):
        if not isinstance(query, s.Query | s.Insert):
            execute(statement, context)
        return False
    framed.clear()
    execution.frame(context, planning.bind(context, query))
    sharing, root = framed[0][0].sharing, framed[0][1]
    nested = {id(i) for node in root.walk() if isinstance(node, b.Union) for i in node.inputs}
    inner = {id(n) for n in root.walk() if isinstance(n, b.Union) and id(n) in nested}
    inner |= {id(n) for node in root.walk() if isinstance(node, b.Aggregate) for n in within(node)}
    shown = {sharing.key(n) for n in root.walk() if not isinstance(n, b.Step) and id(n) not in inner}
    asked = {sharing.key(n) for _, n in framed if id(n) not in inner}
    assert asked == shown
    return True


def within(node: b.Aggregate) -> list[b.BatchNode]:
    """The operators that an aggregation by slices runs as a part of itself."""
    form = by_slices(node)
    if form is None:
        return []
    found = [node.source]
    while found[-1] is not form.function:
        found.append(b.operator(found[-1].inputs[0]))
    return found
