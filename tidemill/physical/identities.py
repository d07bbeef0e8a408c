"""Identities: digests of plans that only contain the facts on which an operator's state depends.

``Digests`` differ if the rows of plans differ in anything, even names; equal digests share operators in a
job. An identity differs only if an operator cannot use the other operator's state. It leaves out

- the names of columns, because an alias may change (a source's columns have the source's names);
- the target of a job's rows and its options; the primary key of a sink counts;
- the interval at which a source looks for new data;
- the delay of a watermark: rows that were late stay excluded.

A checkpoint contains the number of its rules, so a job can use a checkpoint of older rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import ClassVar

from tidemill.catalog.table import CatalogTable
from tidemill.physical import nodes as p
from tidemill.physical.digests import (
    Digests,
    canonical,
    has_canonical_text,
    hashed,
    joined,
    meaningful_fields,
    settled_text,
    table_digest,
)
from tidemill.plan.expressions import AggregateCall, Call, Expr, Literal, OverCall
from tidemill.types.logical import Field

RULES = 5
_BY_DIGESTS = 3
"""The rules of format 3: an identity was the digest itself."""
_BY_IDENTITY = 4
"""The rules of the first jobs of format 4: an operator was called by its identity."""
_PACE = ("source.monitor-interval", "scan.fetch-size", "scan.watermark.idle-timeout")
_SINK = frozenset({"table", "options", "consumed", "static_partition", "target_columns", "overwrite"})


class Identities(Digests):
    """Identities of the nodes of one job's plans, each computed once."""

    named: ClassVar[bool] = False
    by_lineage: ClassVar[bool] = True
    """Whether operators and columns of state are called by their lineages (``physical.lineage``)."""

    def table(self, table: CatalogTable, options: Mapping[str, str]) -> str:
        """The identity of a table."""
        return table_digest(table, _without_pace(table, options))

    def of_itself(self, node: p.PhysicalNode) -> str:
        """The identity of ``node`` without its inputs."""
        return hashed(_WithoutInputs()._text(node))

    def _text(self, node: p.PhysicalNode) -> str:
        settled = settled_text(node, self._text_of_value)
        if settled is not None:
            return settled
        if isinstance(node, p.TableSourceScan):
            options = _without_pace(node.table, dict(node.options))
            return super()._text(replace(node, options=tuple(options.items()), fields=_unnamed(node.fields)))
        if isinstance(node, p.DataFrameScan | p.Values):
            return super()._text(node)
        if isinstance(node, p.WatermarkAssigner):
            node = replace(node, watermark=without_delay(node.watermark))
        parts = [
            f"{f.name}={self._text_of_value(getattr(node, f.name))}"
            for f in meaningful_fields(node)
            if not (isinstance(node, p.Sink) and f.name in _SINK)
        ]
        return joined(type(node).__name__, [*parts, *self._of_table(node)])

    def _of_table(self, node: p.PhysicalNode) -> list[str]:
        if isinstance(node, p.Sink):
            names = [c.name for c in node.table.physical_columns]
            return [canonical([names.index(key) for key in node.table.primary_key])]
        if isinstance(node, p.LookupJoin):
            return [self.table(node.table, dict(node.options))]
        return []

    def _text_of_value(self, value: object) -> str:
        """As ``canonical``, without names of results, and with identities for nodes."""
        if isinstance(value, p.PhysicalNode):
            return self.of(value)
        if isinstance(value, Field):
            return canonical(value.type)
        if isinstance(value, tuple | list):
            return f"[{', '.join(map(self._text_of_value, value))}]"
        if not is_dataclass(value) or has_canonical_text(value):
            return canonical(value)
        named = isinstance(value, AggregateCall | OverCall)
        parts = [
            f"{f.name}={self._text_of_value(getattr(value, f.name))}"
            for f in meaningful_fields(value)
            if not (named and f.name == "name")
        ]
        return joined(type(value).__name__, parts)


class _WithoutInputs(Identities):
    """Identities that treat all inputs alike."""

    def of(self, node: p.PhysicalNode) -> str:
        return "input"


class _OlderIdentities(Identities):
    by_lineage: ClassVar[bool] = False


def identities(rules: int) -> Digests:
    """The identities of a checkpoint with this number of rules."""
    if rules == _BY_DIGESTS:
        return Digests()
    return _OlderIdentities() if rules == _BY_IDENTITY else Identities()


def _unnamed(columns: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(replace(column, name="") for column in columns)


def _without_pace(table: CatalogTable, options: Mapping[str, str]) -> dict[str, str]:
    """A hint tells two scans of a job apart, and whether there is such an option tells whether a source
    ends."""
    own = table.options
    return {k: "" if k in _PACE and own.get(k) == v else v for k, v in options.items()}


def without_delay(watermark: Expr) -> Expr:
    """``ts`` of ``ts - INTERVAL '5' SECOND``."""
    if isinstance(watermark, Call) and watermark.function == "-" and len(watermark.args) == 2:
        base, delay = watermark.args
        return base if isinstance(delay, Literal) else watermark
    return watermark
