"""Queries whose answer is another one when they run again over the same rows: by the clock, by chance, by
what another system answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.option import Configuration
from tidemill.config.watermark_options import IDLE_TIMEOUT, SCAN_IDLE_TIMEOUT
from tidemill.errors import NotSupportedError
from tidemill.functions import registry
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes import describe
from tidemill.physical.nodes import Traits
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call, UserCall
from tidemill.types.logical import LogicalType
from tidemill.user_functions.calls import BoundFunction, BoundTable

_TTL = ("state_ttl", "left_ttl", "right_ttl")


def refuse_moving(roots: Sequence[p.PhysicalNode], config: Configuration, what: str) -> None:
    """NotSupportedError, for ``what``, that names the first part of the plans whose answer is another one if
    the plans run again."""
    if config.read(LATE_ROWS_TABLE):
        raise NotSupportedError(f"{what} of a job with '{LATE_ROWS_TABLE.key}' is not supported")
    idle = config.read(IDLE_TIMEOUT).milliseconds
    for root in roots:
        for node in walk(root):
            found = f"'{IDLE_TIMEOUT.key}'" if idle and isinstance(node, p.WatermarkAssigner) else ""
            found = found or next(_moving(node), "")
            if found:
                raise NotSupportedError(
                    f"{what} is not supported: {found} gives another answer when the query runs again"
                )


def refuse_twice(sinks: Sequence[p.Sink], what: str) -> None:
    """NotSupportedError where two of the INSERTs write one table: what each has written cannot be told."""
    paths = [str(sink.table.path) for sink in sinks]
    twice = next((path for path in paths if paths.count(path) > 1), "")
    if twice:
        raise NotSupportedError(f"{what} of two INSERTs into one table ({twice}) is not supported")


def _moving(node: p.PhysicalNode) -> Iterator[str]:
    if isinstance(node, p.LookupJoin):
        yield f"{describe(node)}, which asks a table as of now,"
    if isinstance(node, p.TableSourceScan) and dict(node.options).get(SCAN_IDLE_TIMEOUT.key):
        yield f"'{SCAN_IDLE_TIMEOUT.key}'"
    for part in _parts(node):
        if isinstance(part, Call) and not _is_stable(part.function):
            yield part.function
        elif isinstance(part, UserCall | BoundTable) and not _own(part).deterministic:
            yield _own(part).name
        elif isinstance(part, p.Emit) and (part.early or part.late):
            yield f"what a window shows by the clock (of {describe(node)})"
        elif getattr(part, "proctime", False):
            yield f"processing time (of {describe(node)})"
        elif any(getattr(part, name, 0) for name in _TTL):
            yield f"state that expires (of {describe(node)})"


def _is_stable(name: str) -> bool:
    function = registry.scalar(name)
    return function is None or function.deterministic


def _own(part: UserCall | BoundTable) -> BoundFunction | BoundTable:
    return part.function if isinstance(part, UserCall) else part


def _parts(node: p.PhysicalNode) -> Iterator[object]:
    """All that a node is made of, itself first; not its inputs."""
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple | list | frozenset):
            waiting += part
        elif is_dataclass(part) and not isinstance(part, Traits | CatalogTable | LogicalType):
            if isinstance(part, p.PhysicalNode) and part is not node:
                continue
            yield part
            waiting += [getattr(part, f.name) for f in fields(part)]
