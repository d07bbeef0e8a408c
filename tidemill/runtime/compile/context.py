"""What compiling one job's plan gathers: sources by id, operator ids, and the session's facts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from tidemill.connectors.api import Source, SourceRequest
from tidemill.operators.api import OperatorSpec
from tidemill.physical import nodes as p
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
    source_names: dict[str, str] = field(default_factory=dict)
    source_groups: dict[str, str] = field(default_factory=dict)
    operators: dict[str, OperatorSpec] = field(default_factory=dict)

    def translator(self, node: p.PhysicalNode) -> Translator:
        """Translates expressions over the fields of ``node``."""
        return Translator(columns=tuple(f.name for f in node.fields), zone=self.zone)

    def add_source(self, source: Source, name: str, group: str = "") -> str:
        """Registers a source; ids follow plan order, so the same plan gives the same ids.

        Sources of one ``group`` read the same table: every epoch takes the same range of all of them.
        """
        key = f"source-{len(self.sources)}"
        self.sources[key] = source
        self.source_names[key] = name
        self.source_groups[key] = group or key
        return key

    def add_operator(self, kind: str, spec: OperatorSpec) -> str:
        """Registers a stateful operator; its id is its place in the plan and its kind."""
        key = f"{len(self.operators)}-{kind}"
        self.operators[key] = spec
        return key

    def fingerprint(self, shape: str, sinks: list[str]) -> str:
        """The job's identity: sources, operators, sinks and the stateless rest (``shape``)."""
        operators = (spec.fingerprint for spec in self.operators.values())
        facts = [shape, *self.source_names.values(), *operators, *sinks]
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]
