"""Runs SELECTs. Literal rows need no job, and nothing that jobs are made of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.late import late
from tidemill.plan import nodes as n
from tidemill.plan.constants import is_constant, literal_rows
from tidemill.plan.optimizer import optimize
from tidemill.session.constant_query import constant_result
from tidemill.session.context import SessionContext
from tidemill.session.mode import is_batch
from tidemill.session.result import TableResult, query_result
from tidemill.session.time_zone import zone_of
from tidemill.types.physical import arrow_type

if TYPE_CHECKING:
    from tidemill.session import execution
else:
    execution = late("tidemill.session.execution")


def run_query(context: SessionContext, plan: n.LogicalNode) -> TableResult:
    """Runs a SELECT. In batch mode the result is complete on return; in streaming mode rows arrive per
    epoch."""
    optimized = optimize(plan)
    batch = is_batch(context)
    rows = None if not batch and _keeps_state(context) else _literal_table(context, optimized)
    if rows is None:
        return execution.run_query(context, plan, optimized)
    if batch:
        return query_result(context, plan.fields, iter((rows,)))
    return constant_result(context, plan.fields, partial(_same, rows))


def _keeps_state(context: SessionContext) -> bool:
    """Whether a streaming SELECT has a checkpoint directory."""
    return context.place_job is None and bool(context.configuration.read(CHECKPOINT_DIRECTORY))


def _literal_table(context: SessionContext, plan: n.LogicalNode) -> pa.Table | None:
    """The rows of an optimised plan of literals, without Spark; None if Spark must compute them."""
    if not is_constant(plan):
        return None
    zone_of(context.time_zone)  # refuses a zone that does not exist
    rows = literal_rows(plan)
    if rows is None:
        return None
    columns = [
        pa.array([row[place] for row in rows], arrow_type(field.type))
        for place, field in enumerate(plan.fields)
    ]
    return pa.Table.from_arrays(columns, names=[field.name for field in plan.fields])


def _same(rows: pa.Table) -> pa.Table:
    return rows
