"""Creates the sources and sinks of a job's tables, with checked options, and files that all machines see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors import registry
from tidemill.connectors.api import Connector, Sink, SinkRequest, Source, SourceRequest
from tidemill.files.fence import OPEN, Fence
from tidemill.physical import nodes as p
from tidemill.plan.nodes import Sink as LogicalSink
from tidemill.runtime.shared_files import ONE_MACHINE, SharedFiles


def make_source(request: SourceRequest, shared: SharedFiles = ONE_MACHINE, fence: Fence = OPEN) -> Source:
    """The source of a table. Links in it must stay within ``fence``."""
    request = replace(request, fence=fence)
    found = registry.validate(request.table, request.options, role="source")
    _check_places(found, request.table, request.options, "source", request.streaming, shared)
    return found.source(request)


def make_sink(
    sink: p.Sink | LogicalSink,
    kinds: frozenset[RowKind],
    job_id: str,
    zone: str,
    shared: SharedFiles,
    *,
    streaming: bool,
    fence: Fence = OPEN,
    ordinal: int = 0,
    ordered: bool = False,
    former: tuple[str, ...] = (),
    kept: tuple[str, ...] = (),
) -> Sink:
    """The sink of a table; ``ordered``, ``former`` and ``kept`` as in SinkRequest."""
    options = dict(sink.options)
    found = registry.validate(sink.table, options, role="sink")
    _check_places(found, sink.table, options, "sink", streaming, shared)
    return found.sink(
        SinkRequest(
            table=sink.table,
            options=options,
            fields=sink.fields,
            kinds=kinds,
            job_id=job_id,
            overwrite=sink.overwrite,
            static_partition=dict(sink.static_partition),
            time_zone=zone,
            streaming=streaming,
            fence=fence,
            ordinal=ordinal,
            ordered=ordered,
            former=former,
            kept=kept,
        )
    )


def _check_places(
    found: Connector,
    table: CatalogTable,
    options: Mapping[str, str],
    role: str,
    streaming: bool,
    shared: SharedFiles,
) -> None:
    for option, location in found.shared_paths(options, role=role, streaming=streaming).items():
        shared.check(location, f"Option '{option}' of table '{table.path}'")
