"""Which tables the state in a savepoint has, and what their columns are called and of which types.

The schema in ``job.json`` (``checkpoint.operator_schema``) has readable names and Flink's types; the
manifests have what is stored. What no schema tells, as in savepoints of older formats, keeps its stored name.

    group-aggregate-1f2e...  groups              ->  group_aggregate_1
                             DISTINCT(user#a1)   ->  group_aggregate_1_distinct_user
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import StateError
from tidemill.operators.rows.entries import COUNT
from tidemill.operators.rows.stored_before import is_mark
from tidemill.operators.window.store.sessions import LAST, PIECES, SESSION, SESSIONS, START, WAKE
from tidemill.physical.names import free_name
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.runtime.checkpoint.savepoint import STATE, Savepoint
from tidemill.sql.parser import parse_type
from tidemill.state.arrow_names import arrow_named
from tidemill.state.layout import Layout
from tidemill.state.manifest import Manifest, TableEntry, TableShape, read_manifest
from tidemill.state.run import DELETED, DUE, HASH, TIME, WEIGHT
from tidemill.state.slices import Slice
from tidemill.state.storage import StateFiles
from tidemill.state.whole_table import stored_layout
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

PARTITION = "$partition"
_UNREAD = (HASH, DELETED)
_OWN: Mapping[str, tuple[str, str, t.LogicalType]] = {
    DUE: ("due", "key", t.BIGINT),
    WEIGHT: ("weight", "weight", t.BIGINT),
    TIME: ("written", "time", t.LocalZonedTimestampType(precision=3)),
    PARTITION: ("partition_id", "partition", t.INT),
    SESSION: ("session", "value", t.BIGINT),
}
"""Columns that all tables of a family have: name, role and type."""
_BOUNDS: Mapping[str, tuple[str, str, t.LogicalType]] = {
    START: ("session_start", "payload", t.BIGINT),
    LAST: ("session_end", "payload", t.BIGINT),
}
_OF_SESSIONS = {**_OWN, **_BOUNDS, WAKE: ("wake", "payload", t.BIGINT)}
"""Those of the table of open sessions."""
_KIND = re.compile(r"(.+?)-[0-9a-f]{8,}")
_ARGUMENTS = re.compile(r"\w+\((?:DISTINCT )?(.*?)\)")
_SINCE = re.compile(r" SINCE (\d+)")
_NO_LETTERS = re.compile(r"[^0-9a-zA-Z]+")
_NO_SCHEMA = OperatorSchema(kind="", text="", rows="", identity="")
_MARK = re.compile(r" \*\w+\*")
"""That a type is a time attribute."""
_ROLES = ("key", "value", "payload", "", "weight", "time", "partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColumn:
    """``stored``: its name in files of state. ``role``: key, value (tells apart rows of a key), payload,
    weight, time or partition; '' where the state does not say so. ``since``: the first epoch that it saw.
    ``required``: NULL is not among its values, as the query's types say. ``table``: the stored table that has
    the column, if it is another one of the operator: the bounds of a session beside its results."""

    name: str
    stored: str
    role: str
    type: t.LogicalType
    since: int = 0
    required: bool = False
    table: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTable:
    """``stored``: its name in manifests. ``types``: of the columns that the query has, by their stored names,
    as manifests have them. ``entries``: by partition, where it has rows. ``shape``: None if no row tells."""

    name: str
    stored: str
    types: Mapping[str, str]
    columns: tuple[StateColumn, ...]
    entries: Mapping[int, tuple[TableEntry, ...]] = field(default_factory=dict)
    shape: TableShape | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """``slices``: what its state is, by partition. ``gap``: as in ``OperatorSchema``."""

    name: str
    id: str
    kind: str
    text: str
    slices: Mapping[int, tuple[Slice, ...]]
    manifests: tuple[Manifest, ...]
    tables: tuple[StoredTable, ...]
    gap: int = 0


def operators_of(savepoint: Savepoint) -> tuple[OperatorState, ...]:
    """In the order of the job's plan. Reads the manifests, no run. StateError."""
    files = state_files(savepoint)
    commit, counts = savepoint.commit, dict[str, int]()
    held = {} if commit is None else commit.slices
    found = []
    for key in savepoint.identity.operators:
        schema = savepoint.identity.schema.get(key, _NO_SCHEMA)
        kind = schema.kind or _kind(key)
        counts[kind] = counts.get(kind, 0) + 1
        name = f"{_NO_LETTERS.sub('_', kind)}_{counts[kind]}"
        text = savepoint.identity.described(key)
        slices = held.get(key, {})
        named = [savepoint.within(s.manifest) for part in slices.values() for s in part]
        manifests = {name: read_manifest(files, name) for name in named}
        for run in (run for manifest in manifests.values() for run in manifest.runs):
            savepoint.within(run.path)
        parts = {n: [manifests[s.manifest] for s in part] for n, part in slices.items()}
        state = OperatorState(
            name=name,
            id=key,
            kind=kind,
            text=text,
            slices=slices,
            manifests=tuple(manifests.values()),
            tables=tuple(_tables(name, schema, parts)),
            gap=schema.gap,
        )
        found.append(state)
    return tuple(found)


def state_files(savepoint: Savepoint) -> StateFiles:
    return StateFiles.open(savepoint.storage.below(STATE), savepoint.what)


def find_table(operators: Iterable[OperatorState], name: str) -> tuple[OperatorState, StoredTable] | None:
    return next(((o, table) for o in operators for table in o.tables if table.name == name), None)


def known_layout(files: StateFiles, table: StoredTable) -> Layout:
    """As the operator lays the table out. StateError where no row has told."""
    layout = told_layout(files, table)
    if layout is None:
        raise StateError(
            f"The state of {files.owner} does not say which columns are the keys of '{table.name}'."
        )
    return layout


def told_layout(files: StateFiles, table: StoredTable) -> Layout | None:
    """As the operator lays the table out; what an earlier query has stored is converted to it (see
    ``state.conversion``). None where no row has told."""
    if table.shape is None:
        return None
    entry = TableEntry(columns=table.types, layers=(), shape=table.shape)
    layout = stored_layout(files, table.stored, entry)
    held = [entry.columns for entries in table.entries.values() for entry in entries]
    return replace(
        layout,
        evolves=True,
        late=tuple(f.name for f in layout.values if any(f.name not in columns for columns in held)),
        counts=COUNT if COUNT in table.types else "",
        arrival=SEQUENCE_COLUMN if SEQUENCE_COLUMN in table.shape.values else "",
    )


def _shape(schema: OperatorSchema, types: Mapping[str, str], entries: list[TableEntry]) -> TableShape | None:
    """Of the rows that the query stores. Rows of partitions that have had no input since an earlier query may
    have other values."""
    shapes = [entry.shape for entry in entries if entry.shape is not None]
    if not shapes:
        return None
    values = {name for shape in shapes for name in shape.values}
    if values or WEIGHT in types or COUNT in types:
        values |= {c.name for c in schema.columns} | {name for name in types if is_mark(name)}
    own = tuple(name for name in types if name in values and name not in shapes[0].keys)
    converted = next((s for s in shapes if not s.mixed and {*s.values} == {*own}), None)
    return converted or replace(shapes[0], values=own, mixed=False)


def _kind(key: str) -> str:
    """Of an operator that has no schema, from its id."""
    match = _KIND.match(key)
    return match[1] if match else key


def _tables(
    operator: str, schema: OperatorSchema, parts: Mapping[int, list[Manifest]]
) -> Iterator[StoredTable]:
    """Those that the schema has first: the first of them is what the operator is about."""
    manifests = [m for part in parts.values() for m in part]
    names = list(dict.fromkeys([*schema.tables, *sorted({n for m in manifests for n in m.tables})]))
    taken: set[str] = set()
    for number, stored in enumerate(names):
        is_main = len(names) == 1 or (bool(schema.tables) and number == 0)
        suffix = _NO_LETTERS.sub("_", schema.readable(stored)).strip("_").lower()
        name = free_name(operator if is_main else f"{operator}_{suffix}", taken)
        taken.add(name)
        entries = {
            n: tuple(m.tables[stored] for m in part if stored in m.tables) for n, part in parts.items()
        }
        entries = {n: found for n, found in entries.items() if found}
        held = [entry for found in entries.values() for entry in found]
        # Manifests also have columns of calls that the query has lost since.
        types = schema.tables.get(stored) or {c: text for e in held for c, text in e.columns.items()}
        shape = _shape(schema, types, held)
        columns = tuple(_columns(schema, stored, types, shape))
        yield StoredTable(
            name=name, stored=stored, types=types, columns=columns, entries=entries, shape=shape
        )


def _columns(
    schema: OperatorSchema, table: str, types: Mapping[str, str], shape: TableShape | None
) -> list[StateColumn]:
    """Keys first; then values, their stored parts, and the columns that all such tables have."""
    arguments = match[1].split(", ") if (match := _ARGUMENTS.match(table)) else []
    keys = schema.keys if shape is None else shape.keys
    order = [*keys, *(shape.values if shape else ())]
    stored = [*(n for n in order if n in types), *sorted(n for n in types if n not in order), PARTITION]
    made, taken = list[StateColumn](), set[str]()
    own = _OF_SESSIONS if table == SESSIONS else _OWN
    for name in stored:
        if name in _UNREAD:
            continue
        label, role, kind = own.get(name, ("", "", t.NullType()))
        required = name in (DUE, WEIGHT)
        if not label:
            known = _argument(name, arguments)
            flink = schema.types.get(known, "")
            label = known.removeprefix("$").replace(" ", "_") if is_mark(known) else schema.readable(known)
            kind = _type(flink, types[name], table)
            required = bool(flink) and not _parsed(flink).nullable
            values = shape.values if shape else ()
            unknown = "" if shape is None else "payload"
            role = "key" if name in keys else "value" if name in values else unknown
        label = free_name(label, taken)
        taken.add(label)
        since = int(match[1]) if (match := _SINCE.search(name) or _SINCE.search(table)) else 0
        made.append(
            StateColumn(name=label, stored=name, role=role, type=kind, since=since, required=required)
        )
    bounds = _BOUNDS if table == PIECES and schema.gap else {}
    beside = [
        StateColumn(
            name=free_name(label, taken), stored=name, role=role, type=kind, required=True, table=SESSIONS
        )
        for name, (label, role, kind) in bounds.items()
    ]
    return sorted([*beside, *made], key=lambda column: _ROLES.index(column.role))


def _argument(name: str, arguments: list[str]) -> str:
    """Values of a table that is called by its arguments are numbered: the argument's own name."""
    number = name.removeprefix("$value")
    is_value = name.startswith("$value") and number.isdigit() and int(number) < len(arguments)
    return arguments[int(number)] if is_value else name


def _type(flink: str, stored: str, table: str) -> t.LogicalType:
    """The type that the schema has, if it is what is stored."""
    try:
        kind = arrow_named(stored)
    except ValueError as e:
        raise StateError(f"A column of the state table '{table}': {e}") from e
    if flink:
        known = _parsed(flink).with_nullable(True)
        if arrow_type(known) == kind:
            return known
    return _flink_type(kind)


def _parsed(flink: str) -> t.LogicalType:
    return parse_type(_MARK.sub("", flink))


def _flink_type(kind: pa.DataType) -> t.LogicalType:
    """Of what a kernel made itself."""
    if pa.types.is_decimal(kind):
        return t.DecimalType(precision=kind.precision, scale=kind.scale)
    if pa.types.is_list(kind):
        return t.ArrayType(element=_flink_type(kind.value_type))
    if pa.types.is_struct(kind):
        return t.RowType(fields=tuple(t.Field(f.name, _flink_type(f.type)) for f in kind))
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    return next((flink for flink in _PLAIN if arrow_type(flink) == kind), t.NullType())


_UNSIGNED: Mapping[pa.DataType, t.LogicalType] = {
    pa.uint8(): t.SmallIntType(),
    pa.uint16(): t.INT,
    pa.uint32(): t.BIGINT,
    pa.uint64(): t.DecimalType(precision=20, scale=0),
}
_PLAIN: tuple[t.LogicalType, ...] = (
    t.BOOLEAN,
    t.TinyIntType(),
    t.SmallIntType(),
    t.INT,
    t.BIGINT,
    t.FloatType(),
    t.DOUBLE,
    t.STRING,
    t.BYTES,
    t.DATE,
    t.TimestampType(),
    t.LocalZonedTimestampType(),
)
