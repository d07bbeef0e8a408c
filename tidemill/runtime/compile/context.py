"""What compiling one job's plan gathers: sources by id, operator ids, and the session's facts."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from tidemill.connectors.api import Source, SourceRequest
from tidemill.operators.api import OperatorSpec
from tidemill.physical import nodes as p
from tidemill.physical.explain import describe
from tidemill.physical.identity import Digests
from tidemill.runtime.spark.expressions import Translator

MakeSource = Callable[[SourceRequest], Source]


@dataclass(slots=True, kw_only=True)
class CompileContext:
    """Mutable while one plan is compiled, then read-only.

    ``per_record``: mini-batch is off, kernels show Flink's intermediate rows. ``per_event``:
    mini-batch was not asked for, so ChangelogNormalize shows every event, as Flink does. ``compact``: a
    deduplication by event time shows one change per key and epoch. ``frames``: registered DataFrames by key.
    """

    make_source: MakeSource
    frames: Mapping[str, DataFrame]
    zone: str
    parallelism: int
    per_record: bool
    per_event: bool = False
    compact: bool = False
    streaming: bool = True
    sources: dict[str, Source] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    source_groups: dict[str, str] = field(default_factory=dict)
    operators: dict[str, OperatorSpec] = field(default_factory=dict)
    digests: Digests = field(default_factory=Digests)

    def translator(self, node: p.PhysicalNode) -> Translator:
        """Translates expressions over the fields of ``node``."""
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    def add_source(self, source: Source, name: str, group: str = "") -> str:
        """Registers a source under ``name``, and a number where it is not the first of that name.

        Sources of one ``group`` read the same table: every epoch takes the same range of all of them.
        """
        key = unused(name, self.sources)
        self.sources[key] = source
        self.source_groups[key] = group or key
        return key

    def add_operator(self, kind: str, node: p.PhysicalNode, spec: OperatorSpec) -> str:
        """Registers the stateful operator of ``node``; its id is its kind and the digest of its sub-plan."""
        key = unused(f"{kind}-{self.digests.of(node)}", self.operators)
        self.operators[key] = spec
        self.descriptions[key] = describe(node)
        return key


def unused(name: str, taken: Container[str]) -> str:
    """``name``, or ``name-2``, ``name-3``...: things that are equal in all are told apart by number alone."""
    number = 1
    key = name
    while key in taken:
        number += 1
        key = f"{name}-{number}"
    return key
