"""Names of the columns of stored rows, and the first epoch of each column.

The name of a column is its lineage. If a later query adds the column, the name also has the epoch: if a query
between had dropped the column, its older values are not read again. By older rules, and if all columns of an
operator are a part of its id, columns have numbers instead, by side (``l0``, ``r3``)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemill.changelog.rowkind import RETRACTIONS, SEQUENCE_COLUMN
from tidemill.operators.api import KeepsRows, KeptRows
from tidemill.operators.rows.stored_before import Late, mark
from tidemill.physical import nodes as p
from tidemill.physical.digests import hashed
from tidemill.physical.lineage_text import SIDES, Lineage, text_of
from tidemill.physical.names import free_name
from tidemill.plan.expressions import Expr, OverCall
from tidemill.runtime.checkpoint.operator_schema import CallSchema, ColumnSchema, OperatorSchema
from tidemill.runtime.compile.state_names import StateNames, node_text, side_column
from tidemill.types.logical import Field

_SIDES = ("left column", "right column")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRows:
    """An operator's id ('' if it has none by these rules) and the rows that it keeps: per input
    its fields as kernels call them, and the identities of the columns.

    - ``late``: the columns that rows stored earlier lack, with the first epochs whose rows have them; None if
      state goes by position.
    - ``key_order``: the order of stored keys, () if nothing is stored.
    - ``several``: a partition stores several rows.
    - ``marked``: the epochs whose marks are in rows that may be taken back
      (``operators.rows.stored_before``).
    """

    operator: str
    fields: tuple[tuple[Field, ...], ...]
    columns: tuple[ColumnSchema, ...] = ()
    late: Late | None = None
    key_order: tuple[str, ...] = ()
    several: bool = False
    marked: frozenset[int] = frozenset()
    calls: tuple[CallSchema, ...] = ()

    def said(self, expr: Expr) -> str:
        """What an expression over all fields is; '' where state goes by place."""
        return "" if self.late is None else text_of(expr, tuple(column.id for column in self.columns))

    def computed(self, expr: Expr, start: str, number: int) -> str:
        """What state calls an expression over all fields, the ``number``-th of those that begin so."""
        return f"{start}{number}" if self.late is None else f"{start}{hashed(self.said(expr))}"

    def keys(self, places: Sequence[int]) -> tuple[str, ...]:
        """The fields of the first input that rows are kept by, in the order in which state is."""
        names = tuple(self.fields[0][place].name for place in places)
        if self.late is None:
            return names
        names = tuple(dict.fromkeys(names))
        return self.key_order if sorted(names) == sorted(self.key_order) else names

    def late_among(self, names: Container[str]) -> Late | None:
        """``late`` of some columns."""
        return None if self.late is None else tuple(each for each in self.late if each[0] in names)

    def late_marked(self, late: Late | None) -> Late | None:
        """``late`` columns of rows that may be taken back: with the marks of those that came after them."""
        epochs = self.marked & {since for _, since in late or ()}
        return late if late is None else (*late, *((mark(epoch), epoch) for epoch in sorted(epochs)))


def by_place(node: p.PhysicalNode) -> NamedRows:
    """Of an operator that all columns count for; it has no id by this."""
    return NamedRows(operator="", fields=_fields_by_place(node.inputs))


def named_rows(names: StateNames, kind: str, node: p.PhysicalNode, *inputs: p.PhysicalNode) -> NamedRows:
    """The operator ``node`` that keeps rows of ``inputs``. A column that is new, or that the last query had
    not, begins with the first epoch of the query."""
    if names.lineages is None:
        return NamedRows(operator=names.operator(kind, node), fields=_fields_by_place(inputs))
    below = [names.lineages.of(each) for each in inputs]
    ids = _column_ids(below)
    operator = names.operator(kind, node, {each for side in ids for each in side})
    stored = names.stored.get(operator)
    words = _SIDES if len(inputs) > 1 else ("column",)
    sides = [
        _columns(zip(own, lineage.texts, each.fields, strict=True), word, stored, names.epoch)
        for own, lineage, each, word in zip(ids, below, inputs, words, strict=True)
    ]
    columns = tuple(column for side in sides for column in side)
    late = tuple((column.name, column.since) for column in columns if column.since)
    tables = () if stored is None else stored.tables.values()
    return NamedRows(
        operator=operator,
        fields=tuple(map(_named, inputs, sides)),
        columns=columns,
        late=late,
        key_order=() if stored is None else stored.keys,
        several=stored is not None and any(SEQUENCE_COLUMN in t for t in stored.tables.values()),
        # Rows of state by an earlier version have no marks.
        marked=frozenset(e for _, e in late if e == names.epoch or any(mark(e) in t for t in tables)),
    )


def _column_ids(inputs: Sequence[Lineage]) -> list[list[str]]:
    """The identities of columns; equal columns of one input get different identities."""
    found = []
    for side, below in zip(SIDES if len(inputs) > 1 else ("",), inputs, strict=True):
        taken: list[str] = []
        for column in below.carried:
            taken.append(free_name(f"{side}{column}", taken))
        found.append(taken)
    return found


def _columns(
    given: Iterable[tuple[str, str, Field]], word: str, stored: OperatorSchema | None, epoch: int
) -> list[ColumnSchema]:
    """Of one input, whose columns are called ``word`` for people."""
    before: Mapping[str, ColumnSchema] = {} if stored is None else {c.id: c for c in stored.columns}
    made = []
    for key, text, field in given:
        known = before.get(key)
        since = known.since if known is not None else epoch if stored is not None else 0
        name = known.name if known is not None else f"{key} SINCE {since}" if since else key
        made.append(ColumnSchema(id=key, name=name, text=f"{word} {text}", type=str(field.type), since=since))
    return made


def _named(node: p.PhysicalNode, columns: Sequence[ColumnSchema]) -> tuple[Field, ...]:
    return tuple(replace(f, name=column.name) for f, column in zip(node.fields, columns, strict=True))


def over_calls(
    names: StateNames, below: p.PhysicalNode, calls: Sequence[OverCall], rows: NamedRows
) -> tuple[CallSchema, ...]:
    """Calls over rows that are all kept. The plan, not the query, names their results."""
    if names.lineages is None:
        return ()
    lineage, stored = names.lineages.of(below), names.stored.get(rows.operator)
    before = {} if stored is None else {call.id: call for call in stored.calls}
    since, new = dict(rows.late or ()), 0 if stored is None else names.epoch
    keys = [hashed(text_of(call, lineage.columns)) for call in calls]
    return tuple(
        CallSchema(
            id=key,
            name=key,
            text=f"{call.function}({', '.join(lineage.texts[a] for a in call.args) or '*'}) OVER",
            type=str(call.type),
            arg_types=tuple(str(below.fields[a].type) for a in call.args),
            since=max((since.get(rows.fields[0][a].name, 0) for a in call.args), default=0),
            born=before[key].born if key in before else new,
        )
        for key, call in zip(keys, calls, strict=True)
    )


def rows_schema(
    kind: str, node: p.PhysicalNode, spec: object, names: StateNames, rows: NamedRows
) -> OperatorSchema:
    """What the state of an operator that keeps rows is made of; ``spec`` says the tables."""
    kept = spec.kept_rows if isinstance(spec, KeepsRows) else KeptRows(layouts=())
    tables = {layout.name: layout.described for layout in kept.layouts}
    stored = {name for columns in tables.values() for name in columns}
    columns = tuple(
        replace(column, needed=column.name in kept.needed) for column in rows.columns if column.name in stored
    )
    return OperatorSchema(
        kind=kind,
        text=node_text(node),
        rows=names.state_lineage(node),
        identity=names.ids.of(node),
        calls=rows.calls,
        keys=tuple(f.name for f in kept.layouts[0].keys) if kept.layouts else (),
        tables=tables,
        labels={c.name: c.text.removeprefix("column ").replace(" column ", " ") for c in columns},
        types={c.name: c.type for c in columns},
        columns=columns,
        changing=tuple(bool(RETRACTIONS & below.traits.kinds) for below in node.inputs),
        limit=kept.most or 0,
        finds=kept.finds,
    )


def _fields_by_place(inputs: Sequence[p.PhysicalNode]) -> tuple[tuple[Field, ...], ...]:
    if len(inputs) == 1:
        return (inputs[0].fields,)
    return tuple(
        tuple(replace(f, name=side_column(side, i)) for i, f in enumerate(below.fields))
        for side, below in enumerate(inputs)
    )
