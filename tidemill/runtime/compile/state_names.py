"""The names of operators, columns and calls in state: if a job starts from the state of another query, the
names of that state.

An operator's name is its kind and the lineage of its rows; a column's name is its own lineage. So a query
that shows other columns finds the same names (``physical.lineage``). Two things depend on the stored state:
the operator that is meant if several have one lineage, and the epoch since which a call exists. By older
rules (``physical.identities``) the names of operators are their identities, and columns have the plan's
names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidemill.changelog.rowkind import RETRACTIONS
from tidemill.errors import StateError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.aggregates.registry import declared
from tidemill.operators.api import Evolving
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.explain.attributes import describe
from tidemill.physical.identities import Identities
from tidemill.physical.lineage import Lineages
from tidemill.physical.names import free_name
from tidemill.plan.expressions import AggregateCall
from tidemill.runtime.checkpoint.operator_schema import CallSchema, OperatorSchema
from tidemill.types.logical import Field

Calls = tuple[AggregateSpec, ...]
Asked = Sequence[tuple[AggregateCall, AggregateSpec]]
Made = Callable[[Calls], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCalls:
    """An operator's id, and its calls over fields of ``below``: the calls as in the plan and as in the
    kernel, their ids, and the epochs in which the query got them."""

    operator: str
    below: p.PhysicalNode
    calls: tuple[AggregateCall, ...]
    specs: Calls
    ids: tuple[str, ...] = ()
    born: tuple[int, ...] = ()


def unused(name: str, taken: Container[str]) -> str:
    """``name``, or ``name-2``, ``name-3``...: things that are equal in all are told apart by number alone."""
    number = 1
    key = name
    while key in taken:
        number += 1
        key = f"{name}-{number}"
    return key


@dataclass(slots=True)
class StateNames:
    """``stored``: the operators that state was left by. ``epoch``: the first that a new call sees, 0 where
    nothing is stored."""

    ids: Digests = field(default_factory=Identities)
    stored: Mapping[str, OperatorSchema] = field(default_factory=dict)
    epoch: int = 0
    lineages: Lineages | None = field(default=None, init=False)
    """None by older rules."""
    _wanted: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if isinstance(self.ids, Identities) and self.ids.by_lineage:
            self.lineages = Lineages(self.ids)

    def survey(self, nodes: Iterable[p.PhysicalNode]) -> None:
        """Learns what the whole job is made of, before any operator is named."""
        if self.stored:
            self._wanted.update(self.ids.of(node) for node in nodes)

    def restart(self) -> None:
        """Forgets which names were given."""
        self._taken.clear()

    def state_lineage(self, node: p.PhysicalNode) -> str:
        """The lineage of the rows that the state of ``node`` is of; by older rules its identity."""
        if self.lineages is None:
            return self.ids.of(node)
        lineage = self.lineages.of(node)
        return lineage.kept or lineage.rows

    def rows(self, node: p.PhysicalNode) -> str:
        """The lineage of the rows of ``node``; by older rules its identity."""
        return self.ids.of(node) if self.lineages is None else self.lineages.of(node).rows

    def operator(self, kind: str, node: p.PhysicalNode, calls: Container[str] | None = None) -> str:
        """The id of an operator with these ``calls`` or columns (ids). Of the stored operators of its kind
        and rows it is the operator with exactly the same calls. Otherwise it is the operator that shares the
        most calls and that no other operator of the job is. If an operator has no calls, all columns count.
        """
        rows = (
            self.state_lineage(node)
            if calls is not None or self.lineages is None
            else self.lineages.whole(node)
        )
        name = f"{kind}-{rows}"
        alike = [key for key in self.stored if key == name or key.startswith(f"{name}-")]
        free = [key for key in alike if key not in self._taken]
        identity = self.ids.of(node)
        same = [key for key in free if self.stored[key].identity == identity]
        best = same[:1] or self._nearest(
            [k for k in free if self.stored[k].identity not in self._wanted], calls or ()
        )
        key = best[0] if best else unused(name, {*self._taken, *alike})
        self._taken.add(key)
        return key

    def _nearest(self, keys: list[str], calls: Container[str]) -> list[str]:
        shared = dict.fromkeys(keys, 0)
        for key in keys:
            stored = self.stored[key]
            ids = [*(call.id for call in stored.calls), *(column.id for column in stored.columns)]
            shared[key] = sum(each in calls for each in ids)
        best = [key for key in keys if shared[key] == max(shared.values())]
        if len(best) > 1:
            raise StateError(
                f"Which of the operators {', '.join(best)} goes on as "
                f"{self.stored[best[0]].text} of the new query cannot be told: they have equally much of it",
                hint="Change one of the INSERTs at a time.",
            )
        return best

    def fields(
        self, node: p.PhysicalNode, keys: Sequence[int] = (), *, apart: bool = False
    ) -> tuple[Field, ...]:
        """The fields of ``node`` as a kernel calls them: fields of one lineage alike, ``keys`` all apart.
        ``apart``: all fields are, as buckets get other values of each."""
        if self.lineages is None:
            return node.fields
        columns = self.lineages.of(node).carried
        found = [replace(f, name=column) for f, column in zip(node.fields, columns, strict=True)]
        taken: set[str] = set()
        for key in range(len(found)) if apart else keys:
            found[key] = replace(found[key], name=free_name(found[key].name, taken))
            taken.add(found[key].name)
        return tuple(found)

    def calls(
        self, kind: str, node: p.PhysicalNode, below: p.PhysicalNode, asked: Asked, made: Made
    ) -> NamedCalls:
        """The operator ``node`` and its calls, over fields of ``below``, with their names in state and their
        ``since``. A call that is new shares the state of others if they hold all that it needs, and begins
        with ``epoch`` if not. ``asked``: the calls, and their specs over ``fields``; ``made``: the kernel of
        specs."""
        calls, specs = zip(*asked, strict=True) if asked else ((), ())
        if self.lineages is None:
            return NamedCalls(operator=self.operator(kind, node), below=below, calls=calls, specs=specs)
        lineage = self.lineages.of(below)
        ids = tuple(self.lineages.stored_call(call, lineage) for call in calls)
        operator = self.operator(kind, node, ids)
        stored = self.stored.get(operator)
        before = {} if stored is None else {call.id: call for call in stored.calls}
        taken: set[str] = set()
        named, born = [], []
        for key, spec in zip(ids, specs, strict=True):
            known = before.get(key)
            born.append(known.born if known is not None else self.epoch if stored is not None else 0)
            since = known.since if known is not None else self._since(stored, spec, made)
            name = free_name(f"#{key} SINCE {born[-1]}", taken)
            taken.add(name)
            named.append(replace(spec, since=since, name=name))
        return NamedCalls(
            operator=operator,
            below=below,
            calls=calls,
            specs=tuple(named),
            ids=ids,
            born=tuple(born),
        )

    def described(self, calls: NamedCalls) -> tuple[CallSchema, ...]:
        """The calls as they are stored; none by older rules."""
        if self.lineages is None:
            return ()
        texts = self.lineages.call_texts(calls.calls, calls.below)
        fields = calls.below.fields
        parts = zip(calls.ids, calls.born, texts, calls.calls, calls.specs, strict=True)
        return tuple(
            CallSchema(
                id=key,
                name=call.item,
                text=text,
                type=str(call.type),
                arg_types=tuple(str(fields[a].type) for a in call.args),
                since=spec.since or 0,
                born=born,
                initial=_initial(spec),
            )
            for key, born, text, call, spec in parts
        )

    def labels(self, below: p.PhysicalNode) -> dict[str, str]:
        """What the fields of ``below`` are for people, by their names in state."""
        if self.lineages is None:
            return {}
        lineage = self.lineages.of(below)
        return dict(zip(lineage.carried, lineage.texts, strict=True))

    def _since(self, stored: OperatorSchema | None, call: AggregateSpec, made: Made) -> int:
        """The first epoch that a call sees which the query did not have."""
        if stored is None:
            return 0
        for since in sorted({call.since for call in stored.calls} | {0}):
            if holds(stored, made((replace(call, since=since),)), but=call.name):
                return since
        return self.epoch


def holds(stored: OperatorSchema, spec: object, but: str) -> bool:
    """Whether the state of an operator has all columns that ``spec`` needs, ``but`` one."""
    if not isinstance(spec, Evolving):
        return False
    return not any(
        stored.tables.get(layout.name, {}).get(name) != kind
        for layout in spec.evolving
        for name, kind in layout.described.items()
        if name != but
    )


def operator_schema(
    kind: str,
    node: p.PhysicalNode,
    spec: object,
    names: StateNames,
    calls: NamedCalls | None,
) -> OperatorSchema:
    """What the state of an operator is made of."""
    layouts = spec.evolving if isinstance(spec, Evolving) else ()
    given = _given(node) if calls is None else {f.name: f for f in names.fields(calls.below)}
    return OperatorSchema(
        kind=kind,
        text=node_text(node),
        rows=names.rows(node),
        identity=names.ids.of(node),
        retracts=calls is not None and bool(RETRACTIONS & calls.below.traits.kinds),
        calls=() if calls is None else names.described(calls),
        keys=tuple(f.name for f in layouts[0].keys) if layouts else (),
        tables={layout.name: layout.described for layout in layouts},
        labels={c: f.name for c, f in given.items()} if calls is None else names.labels(calls.below),
        types={name: str(f.type) for name, f in given.items()},
        # Hot keys have their sessions in several buckets.
        gap=spec.gap if isinstance(spec, SessionAggregateSpec) and not spec.bucket else 0,
    )


def side_column(side: int, place: int) -> str:
    """The kernel's name of a field of one side, where columns go by place."""
    return f"{'lr'[side]}{place}"


def _given(node: p.PhysicalNode) -> dict[str, Field]:
    """The fields below ``node``, by the names that kernels give them: those of two sides are numbered."""
    if len(node.inputs) == 2:
        sides = enumerate(node.inputs)
        return {side_column(side, i): f for side, below in sides for i, f in enumerate(below.fields)}
    return {f.name: f for below in node.inputs for f in below.fields}


def node_text(node: p.PhysicalNode) -> str:
    """What a node is for people, without what it computes, which its calls say."""
    text = describe(node)
    start, found, _ = text.partition(", select=[")
    return f"{start})" if found else text


def _initial(call: AggregateSpec) -> str:
    """The value over no rows."""
    found = declared(call.function)
    return "NULL" if found is None or found.over_no_rows is None else str(found.over_no_rows)
