"""The spec of a temporal join: its sides and output, and the layouts of its state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.operators.api import KeptRows
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.lookup_join import THERE
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.waiting import WaitingRows
from tidemill.state.layout import Layout

TIME, MARK, ALIVE = "$since", "$mark", "$alive"


@dataclass(frozen=True, kw_only=True)
class TemporalJoinShape:
    """``times``: the time columns of the left and the right side. ``null_safe``: per key, whether NULL equals
    NULL. ``behind``: per side by how many ms its
    watermark is held back: the side with the smaller delay waits for the other's, so what is late is told by
    the rows of a side alone. ``alive``: a right column that is TRUE if the version can be seen, '' where
    all can. ``latest``: a version older than one that came before is none. ``outer``: left rows without a
    version are padded; ``tells``: it is said beside each row whether it has one (``$there``). Left rows that
    may go, where they do (``left.retracts``), wait for their time as well, and say what would be found then.
    ``state_ttl``: for how many ms a key's version is kept that neither comes nor is asked for, 0 for ever.
    """

    left: JoinSide
    right: JoinSide
    times: tuple[str, str]
    null_safe: tuple[bool, ...]
    behind: tuple[int, int] = (0, 0)
    outer: bool = False
    tells: bool = False
    alive: str = ""
    latest: bool = False
    sequence: bool = False
    keeps_time: bool = False
    state_ttl: int = 0

    @property
    def fingerprint(self) -> str:
        facts = (self.left.columns, self.right.columns, self.left.keys, self.right.keys, self.times)
        text = f"temporal-join since {facts} {self.behind} {self.latest} {self.alive}"
        text += " of changes" if self.left.retracts else ""
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def waiting(self) -> WaitingRows:
        """Left rows by the watermark that they are due at."""
        hidden = ((KIND_COLUMN, pa.int8()),) * self.left.retracts
        hidden += ((SEQUENCE_COLUMN, pa.int64()),) * self.sequence
        columns = (*self.left.columns, *hidden)
        return WaitingRows(name="left", columns=columns, keys=self.left.keys, late=self.left.late)

    @property
    def kept_rows(self) -> KeptRows:
        return KeptRows(
            layouts=(self.waiting.layout, self.coming, self.current, *[self.newest] * self.latest),
            finds=not self.left.retracts,
        )

    @cached_property
    def coming(self) -> Layout:
        """Versions by the watermark from which on every row due later sees them. A version is its key, its
        time, and the watermark that it came behind, NONE if it was in time."""
        values = (pa.field(TIME, pa.int64()), pa.field(MARK, pa.int64()))
        return Layout(
            name="coming", keys=self.right.key_fields, values=values, columns=self._payload, by_time=True
        )

    @cached_property
    def current(self) -> Layout:
        """The latest version per key that every later row may see."""
        columns = (pa.field(TIME, pa.int64()), *self._payload)
        return Layout(name="current", keys=self.right.key_fields, columns=columns, ttl=self.state_ttl)

    @cached_property
    def newest(self) -> Layout:
        """The latest time of a version per key, if ``latest``."""
        columns = (pa.field(TIME, pa.int64()),)
        return Layout(name="newest", keys=self.right.key_fields, columns=columns, ttl=self.state_ttl)

    @property
    def _payload(self) -> tuple[pa.Field, ...]:
        return (pa.field(ALIVE, pa.bool_()), *self.right.value_fields)

    def output_schema(self) -> pa.Schema:
        columns = [(c, dict(side.columns)[c]) for side in (self.left, self.right) for c in side.output]
        columns += [(THERE, pa.bool_())] * self.tells
        return output_schema(columns, kinds=self.left.retracts, sequence=self.sequence, timed=self.keeps_time)
