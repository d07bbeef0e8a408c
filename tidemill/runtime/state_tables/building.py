"""A savepoint of a job of which nothing has run: its state is made of rows, table by table.

Numbered, as they happen:

1. ``job.json`` claims the place.
2. Sources say how far they reach. The job begins behind that.
3. Tables are written, of an operator those of values first. Each is as an edit of a table without rows
   (``editing``). Records are compared with the values that are there.
4. ``savepoint.json`` is written: the savepoint is there. Before that it is absent.

What can be built, and from what, is said in ``new_tables``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.errors import ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.epochs import EpochCommit, recorded
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import SOURCES, STATE, check_empty
from tidemill.runtime.state_tables.editing import Edit, claim, finish, staged
from tidemill.runtime.state_tables.new_tables import NewTable
from tidemill.runtime.state_tables.writer import Part, StateWriter
from tidemill.state.slices import KEY_GROUPS, Slice, Slices, key_groups
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST = 1


@dataclass(slots=True, kw_only=True)
class NewState:
    """``tables`` by name, in the order in which they must be written; ``now`` in milliseconds;
    ``watermarks``: as in ``EpochCommit``."""

    target: Storage
    identity: JobIdentity
    tables: Mapping[str, NewTable]
    parallelism: int
    now: int
    watermarks: Mapping[str, int] = field(default_factory=dict)
    _slices: Slices = field(default_factory=dict)
    _offsets: dict[str, Offset] = field(default_factory=dict)
    _begun: bool = False

    def begin(self) -> None:
        check_empty(self.target)
        claim(self.target, self.identity)  # 1
        self._begun = True

    def read_to_the_end(self, sources: Mapping[str, Source], spark: SparkSession) -> None:
        """What is there now counts as read."""
        for key, source in sources.items():  # 2
            source.record_in(self.target.below(SOURCES).below(key))
            source.search_with(spark)
            self._offsets[key] = source.next_offset(None, ReadLimit())

    def put(
        self,
        name: str,
        columns: tuple[str, ...],
        run: Callable[[Callable[[DataFrame], DataFrame]], list[str]],
    ) -> None:
        """All rows of a table. ``columns``: those that ``run`` gives to what writes them, in order."""
        new = self.tables[name]
        by_name = {c.name: c for c in new.columns}
        given = tuple(by_name[c].stored for c in columns)
        computed = [c for c in new.table.columns if c.stored in new.computed]
        fields = (*(Field(c, by_name[c].type) for c in columns), *(Field(c.name, c.type) for c in computed))
        writer = StateWriter(
            root=self.target.below(STATE),
            operator=new.operator.id,
            shown=name,
            rules=new.rules,
            names={c.stored: c.name for c in new.table.columns},
            parts=tuple(self._parts(new)),
            columns=(*given, *(c.stored for c in computed)),
            epoch=_FIRST,
            now=self.now,
        )
        tokens = run(lambda frame: staged(writer, new.completed(frame, given), Edit(fields=fields)))  # 3
        held = self._slices.setdefault(new.operator.id, {})
        parts = {token["part"]: token for token in map(json.loads, tokens)}
        if new.rules.told is not None and held.keys() - parts.keys():
            raise ValidationError(f"'{name}' lacks keys that other tables of its operator have.")
        for part, token in parts.items():
            if token["manifest"] is None:
                continue
            held[part] = (Slice(token["manifest"], *token["groups"]),)

    def _parts(self, new: NewTable) -> Iterator[Part]:
        held, count = self._slices.get(new.operator.id, {}), 1 if new.single else self.parallelism
        for number in range(count):
            first, stop = key_groups(number, count) if count > 1 else (0, KEY_GROUPS)
            yield number, first, stop, tuple((s.manifest, s.first, s.stop) for s in held.get(number, ()))

    def publish(self) -> None:
        slices = {operator: parts for operator, parts in self._slices.items() if parts}
        commit = EpochCommit(
            epoch=_FIRST,
            time=self.now,
            offsets=self._offsets,
            manifests=recorded(slices),
            tokens={},
            watermarks=dict(self.watermarks),
        )
        finish(self.target, self.identity, commit)  # 4

    def discard(self) -> None:
        if self._begun:
            self.target.remove_directory("")
