"""What the state of a job is made of: per operator its tables, columns and calls, as ``job.json`` has them.

Written when a job starts. The next start compares it with what its query needs (``evolution``), and it says
in words what files of state hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSchema:
    """An aggregate call. ``id``: its identity over columns of sources; ``name``: the SELECT item that it is a
    part of, '' for none; ``text``: its text for people. ``type``, ``arg_types``: as Flink spells them.
    ``since``: the first epoch that the call has seen; ``born``: the epoch in which the query got the call;
    both are 0 from the start. ``initial``: its value over no rows."""

    id: str
    name: str
    text: str
    type: str
    arg_types: tuple[str, ...] = ()
    since: int = 0
    born: int = 0
    initial: str = "NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSchema:
    """A column of rows that an operator keeps. ``id``: its identity over columns of sources, and its input;
    ``name``: its name in state; ``text``: its text for people; ``type``: as Flink spells it. ``since``: the
    first epoch whose rows have the column, 0 if all rows have it. ``needed``: every row must have the column.
    """

    id: str
    name: str
    text: str
    type: str
    since: int = 0
    needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSchema:
    """- ``rows``: the identity of the operator's rows (``physical.lineage``).
    - ``identity``: everything that its state depends on (``physical.identities``).
    - ``text``: the operator as in EXPLAIN.
    - ``tables``: by name the columns of each table with type and version; ``keys``: the keys of the tables.
    - ``labels``: texts for people by the names of columns in state.
    - ``types``: by the same names the Flink types of columns of the input.
    - ``retracts``: the operator's rows may be taken back.
    - ``columns``: the columns that an operator carries if it keeps rows.
    - ``changing``: per input whether its rows may be taken back.
    - ``limit``: the most rows that are kept per key, 0 for all.
    - ``finds``: a retraction finds its row even if the row was stored with fewer columns.
    - ``gap``: the milliseconds after its last row at which a session ends; 0 if the operator has no sessions,
      or has them in buckets.
    """

    kind: str
    text: str
    rows: str
    identity: str
    retracts: bool = False
    calls: tuple[CallSchema, ...] = ()
    keys: tuple[str, ...] = ()
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    columns: tuple[ColumnSchema, ...] = ()
    changing: tuple[bool, ...] = ()
    limit: int = 0
    finds: bool = True
    gap: int = 0

    def readable(self, name: str) -> str:
        """What a table or column of state is called, for people. Names by lineage are found within others."""
        if name in self.labels:
            return self.labels[name]
        for column, label in self.labels.items():
            if "#" in column:
                name = name.replace(column, label)
        return name

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """TypeError or KeyError if ``data`` is none."""
        calls = tuple(CallSchema(**{**c, "arg_types": tuple(c["arg_types"])}) for c in data["calls"])
        columns = tuple(ColumnSchema(**column) for column in data.get("columns", ()))
        told = {"keys": tuple(data["keys"]), "changing": tuple(data.get("changing", ()))}
        return cls(**{**data, **told, "calls": calls, "columns": columns})
