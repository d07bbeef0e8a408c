"""The connector ``savepoint``: a table of a savepoint's state, or about it.

Keys as in Flink: ``state.path`` names a savepoint, or the checkpoint directory of a job that has ended;
``operator.uid`` one of its tables, as the catalog of type ``savepoint`` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.connectors.api import Connector, ConnectorOption, Sink, SinkRequest, Source, SourceRequest
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.state_tables import differences, largest_keys
from tidemill.runtime.state_tables.editing import Edit, sink_of
from tidemill.runtime.state_tables.listings import FUNCTIONS, LISTINGS, Listing
from tidemill.runtime.state_tables.naming import (
    OperatorState,
    StoredTable,
    find_table,
    operators_of,
    state_files,
    told_layout,
)
from tidemill.runtime.state_tables.source import ListedRows, StateReader, StateSource
from tidemill.types.logical import Field, LogicalType

ABOUT: Mapping[str, tuple[Field, ...]] = {
    **{name: listing.fields for name, listing in LISTINGS.items()},
    largest_keys.NAME: largest_keys.FIELDS,
}
"""The tables that are about a savepoint, with their columns."""
_KEPT = ("time", "partition")
_FIXED = ("key", "value", *_KEPT)
PATH, TABLE, TARGET, COMPARED = "state.path", "operator.uid", "state.target", "state.compared"
_PLACES = (PATH, TARGET, COMPARED)


class SavepointConnector(Connector):
    identifier = "savepoint"
    options = (
        ConnectorOption(key=PATH, required=True, doc="The savepoint's directory."),
        ConnectorOption(
            key=TABLE, required=True, doc="A table of it, such as `group_aggregate_1`, or `operators`."
        ),
        ConnectorOption(key=TARGET, doc="Where INSERT writes a new savepoint, which has the rows."),
        ConnectorOption(
            key=COMPARED, doc="Another savepoint, of which the table `differences` says what differs."
        ),
        *(ConnectorOption(key=key, doc="How its object store is reached.") for key in SETTINGS),
    )
    is_source = True
    is_sink = True
    changes_rows = True

    def shared_paths(self, options: Mapping[str, str], *, role: str, streaming: bool) -> Mapping[str, str]:
        return {key: options[key] for key in _PLACES if key in options}

    def named_paths(self, options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        yield from ((key, options[key]) for key in _PLACES if key in options)

    def fixed_columns(self, table: CatalogTable, options: Mapping[str, str]) -> tuple[str, ...] | None:
        """The columns that identify rows, and the columns that the state keeps by itself. NotSupportedError
        for a table that lacks columns: they would be NULL in each written row."""
        savepoint = Savepoint.open(Storage.configured(options[PATH], options))
        if options[TABLE] in ABOUT:
            raise NotSupportedError(f"Rows of '{options[TABLE]}' cannot change: it is about the savepoint.")
        _, found = _found(savepoint, operators_of(savepoint), options[TABLE])
        declared = {f.name for f in _declared(table)}
        for column in found.columns:
            if column.role not in _KEPT and column.name not in declared:
                raise NotSupportedError(
                    f"Rows of table '{table.path}' cannot change: the table lacks the column "
                    f"'{column.name}' of the state.",
                    hint="Declare all columns, or use a catalog of type 'savepoint'.",
                )
        return tuple(c.name for c in found.columns if c.role in _FIXED)

    def source(self, request: SourceRequest) -> Source:
        """StateError where the savepoint cannot be read; ValidationError for a table that it lacks."""
        savepoint = Savepoint.open(Storage.configured(request.options[PATH], request.options))
        operators, name = operators_of(savepoint), request.options[TABLE]
        listing = LISTINGS.get(name) or FUNCTIONS.get(name)
        if listing is not None:
            return _listed(savepoint, operators, listing, request)
        if name == largest_keys.NAME:
            return _largest(savepoint, operators, request)
        if name == differences.NAME and COMPARED in request.options:
            return _compared(savepoint, operators, request)
        return _stored(savepoint, *_found(savepoint, operators, name), request)

    def sink(self, request: SinkRequest) -> Sink:
        """StateError, ValidationError: see ``source``; also for a table that cannot be written."""
        target = request.options.get(TARGET, "")
        if not target:
            raise ValidationError(
                "Rows of a savepoint's state are written into a new savepoint: "
                f"'tidemill.savepoint.target' does not say where (of a table of its own '{TARGET}')."
            )
        if request.streaming or request.overwrite:
            what = "INSERT OVERWRITE of" if request.overwrite else "A job without end that writes"
            raise NotSupportedError(
                f"{what} state in a savepoint is not supported",
                hint="Use INSERT INTO with 'execution.runtime-mode' = 'batch'.",
            )
        savepoint = Savepoint.open(Storage.configured(request.options[PATH], request.options))
        operators = operators_of(savepoint)
        operator, table = _found(savepoint, operators, request.options[TABLE])
        _check(request.table, {c.name: c.type for c in table.columns})
        place = Storage.configured(target, request.options)
        edit = Edit(fields=tuple(_declared(request.table)), deletes=RowKind.DELETE in request.kinds)
        return sink_of(savepoint, operators, operator, table, place, edit)


def _found(
    savepoint: Savepoint, operators: tuple[OperatorState, ...], name: str
) -> tuple[OperatorState, StoredTable]:
    found = find_table(operators, name)
    if found is None:
        names = (*ABOUT, *(t.name for o in operators for t in o.tables))
        raise ValidationError(f"There is no table '{name}' in {savepoint.what}.", expected=names)
    return found


def _listed(
    savepoint: Savepoint, operators: tuple[OperatorState, ...], listing: Listing, request: SourceRequest
) -> StateSource:
    _check(request.table, {f.name: f.type.with_nullable(True) for f in listing.fields})
    wanted = tuple(f.name for f in request.fields)
    return StateSource(
        tasks=(list(listing.rows(savepoint, operators)),),
        run=ListedRows(fields=listing.fields, wanted=wanted),
        fields=request.fields,
        sequence=request.sequence,
    )


def _largest(
    savepoint: Savepoint, operators: tuple[OperatorState, ...], request: SourceRequest
) -> StateSource:
    _check(request.table, {f.name: f.type for f in largest_keys.FIELDS})
    wanted = tuple(f.name for f in request.fields)
    run = largest_keys.LargestKeys(files=state_files(savepoint), now=_time(savepoint), wanted=wanted)
    tasks = tuple(largest_keys.tasks_of(operators))
    return StateSource(tasks=tasks, run=run, fields=request.fields, sequence=request.sequence)


def _compared(
    savepoint: Savepoint, operators: tuple[OperatorState, ...], request: SourceRequest
) -> StateSource:
    _check(request.table, {f.name: f.type for f in differences.FIELDS})
    other = Savepoint.open(Storage.configured(request.options[COMPARED], request.options))
    files = state_files(savepoint), state_files(other)
    return StateSource(
        tasks=tuple(differences.tasks_of(operators, operators_of(other), files)),
        run=differences.Differences(
            files=files,
            now=(_time(savepoint), _time(other)),
            wanted=tuple(f.name for f in request.fields),
        ),
        fields=request.fields,
        sequence=request.sequence,
    )


def _time(savepoint: Savepoint) -> int:
    """The processing time of its epoch, in milliseconds."""
    return savepoint.commit.time if savepoint.commit is not None else 0


def _stored(
    savepoint: Savepoint, operator: OperatorState, table: StoredTable, request: SourceRequest
) -> StateSource:
    columns = {c.name: c for c in table.columns}
    _check(request.table, {c.name: c.type for c in table.columns})
    held = [(n, parts) for n, parts in sorted(operator.slices.items()) if n in table.entries]
    return StateSource(
        tasks=tuple((n, [(s.manifest, s.first, s.stop) for s in parts]) for n, parts in held),
        run=StateReader(
            files=state_files(savepoint),
            table=table.stored,
            now=_time(savepoint),
            columns=tuple(columns[f.name] for f in request.fields),
            layout=told_layout(state_files(savepoint), table),
        ),
        fields=request.fields,
        sequence=request.sequence,
    )


def _check(table: CatalogTable, known: Mapping[str, LogicalType]) -> None:
    """ValidationError for a declared column that the table does not have, or has of another type."""
    for field in _declared(table):
        kind = known.get(field.name)
        if kind is None:
            raise ValidationError(
                f"Column '{field.name}' of table '{table.path}' is not in the state.",
                expected=tuple(known),
            )
        if kind != field.type.with_nullable(True):
            raise ValidationError(
                f"Column '{field.name}' of table '{table.path}' is {kind} in the state, not {field.type}."
            )


def _declared(table: CatalogTable) -> Iterator[Field]:
    return (Field(c.name, c.type) for c in table.physical_columns)


CONNECTOR = SavepointConnector()
