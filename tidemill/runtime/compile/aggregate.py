"""GroupAggregate -> the group aggregate kernel."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY, RETRACTIONS, RowKind
from tidemill.errors import InternalError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.shared_distinct.operator import SharedDistinctSpec
from tidemill.operators.shared_distinct.shared_keys import Grouping, SharedKeys
from tidemill.physical import nodes as p
from tidemill.physical.names import free_name
from tidemill.plan.expressions import AggregateCall, OverCall
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, timed_rows
from tidemill.runtime.compile.not_null import doubtful, sum_overflows
from tidemill.runtime.compile.schemas import keyed_schema, names, port_schema
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.compile.state_names import NamedCalls
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type, quote


@build.register
def _aggregate(node: p.GroupAggregate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    inputs = context.state.fields(node.source, node.keys)
    spec, calls = group_spec(node, context, sequenced, inputs)
    if node.versions:
        below = timed_rows(node, node.source, context, True)
    else:
        below = compile_node(node.source, context, spec.needs_sequence)
    operator = context.add_operator("group-aggregate", node, spec, calls)
    read = _read(node, inputs)
    kinds = INSERT_ONLY if spec.insert_only else node.traits.kinds
    return g.Keyed(
        columns=names(node.fields),
        kinds=kinds,
        sequenced=sequenced,
        operator=operator,
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=tuple(node.input.fields[i].name for i in read.values()),
                columns=tuple(read),
                keys=tuple(name for name, _ in spec.keys),
                schema=port_schema(inputs, tuple(read), below) if node.versions else None,
                timed=node.versions,
            ),
        ),
        schema=keyed_schema(node.fields, kinds, sequenced, spec.timed),
        single=not node.keys,
        local=spec.combinable and not spec.per_record,
        partitioned=tuple(frozenset({f.name}) for f in node.fields[: len(node.keys)]),
        keeps_time=spec.timed,
        delay=delay_of(below) if spec.timed else None,
    )


@build.register
def _part(node: p.AggregatePart, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The columns of one reader; of the updates those that change one of its calls."""
    below = compile_node(node.input, context, sequenced)
    columns = tuple(below.columns[place] for place in node.columns)
    return g.Select(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        expressions=tuple(map(quote, columns)),
        references=columns,
        marked=g.Marked(below.columns[-1], node.calls),
    )


@build.register
def _shared(node: p.SharedDistinct, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if sequenced:
        raise InternalError("what is new of distinct values has no order")
    shared = shared_keys(node.shared, node.input.fields, node.fields[:-1])
    spec = SharedDistinctSpec(shared=shared, number=node.fields[-1].name)
    return g.Keyed(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=False,
        operator=context.add_operator("shared-distinct", node, spec),
        spec=spec,
        ports=(
            g.Port(
                input=compile_node(node.input, context, False),
                references=shared.read,
                columns=shared.read,
                keys=tuple(f.name for f in shared.keys),
            ),
        ),
        schema=keyed_schema(node.fields, INSERT_ONLY, False),
        local=spec.combinable,
        partitioned=partitioned(shared),
    )


def partitioned(shared: SharedKeys) -> tuple[frozenset[str], ...]:
    """Per column that rows are sent by the one of results that has it: none has the value that is counted."""
    given = {place - len(shared.known): name for (name, _), place in shared.shown}
    return (*(frozenset({given[i]}) for i in range(len(shared.kept))), frozenset())


def shared_keys(reuse: p.DistinctReuse, inputs: tuple[Field, ...], keys: tuple[Field, ...]) -> SharedKeys:
    """What the kernel is told of ``reuse``, whose columns are among ``inputs``."""
    *kept, value = ((inputs[c].name, arrow_type(inputs[c].type)) for c in reuse.kept)
    others = [place for place in range(len(keys)) if place not in reuse.places]
    places = {place: i for i, place in enumerate((*reuse.places, *others))}
    sets = dict.fromkeys(combination.grouping for combination in reuse.combinations)
    return SharedKeys(
        kept=tuple(kept),
        value=value,
        known=tuple(zip(*(combination.values for combination in reuse.combinations), strict=True)),
        shown=tuple(((f.name, arrow_type(f.type)), places[i]) for i, f in enumerate(keys)),
        groupings=tuple(_grouping(reuse, number, inputs) for number in sets),
        width=reuse.width,
    )


def _grouping(reuse: p.DistinctReuse, grouping: int, inputs: tuple[Field, ...]) -> Grouping:
    own = [(c, number) for number, c in enumerate(reuse.combinations) if c.grouping == grouping]
    return Grouping(
        columns=tuple(inputs[column].name for column, _ in own[0][0].conditions),
        values=tuple(tuple(value for _, value in c.conditions) for c, _ in own),
        numbers=tuple(number for _, number in own),
    )


def group_spec(
    node: p.GroupAggregate, context: CompileContext, sequenced: bool, inputs: tuple[Field, ...]
) -> tuple[GroupAggregateSpec, NamedCalls]:
    """The kernel's spec over ``inputs``, the fields below as it calls them."""
    keys = tuple((inputs[k].name, arrow_type(inputs[k].type)) for k in node.keys)
    taken = {name for name, _ in keys}
    results = node.fields[len(node.keys) : len(node.keys) + len(node.calls)]
    asked = [
        (call, call_spec(call, inputs, free_name(field.name, taken)))
        for call, field in zip(node.calls, results, strict=True)
    ]
    spec = GroupAggregateSpec(
        keys=keys,
        retracts=bool(node.source.traits.kinds & RETRACTIONS),
        emit_update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        per_record=context.per_record or node.versions or context.digests.of(node) in context.told,
        sequence=sequenced,
        timed=node.versions,
        state_ttl=node.state_ttl,
        mark=node.fields[-1].name if node.marked else "",
    )
    calls = context.state.calls(
        "group-aggregate", node, node.source, asked, lambda specs: replace(spec, calls=specs)
    )
    return replace(spec, calls=calls.specs), calls


def call_spec(call: AggregateCall, inputs: tuple[Field, ...], name: str) -> AggregateSpec:
    """One call over the kernel's columns."""
    condition = None if call.filter is None else inputs[call.filter].name
    return replace(plain_spec(call, inputs, name), filter=condition, user=call.user)


def plain_spec(call: AggregateCall | OverCall, inputs: tuple[Field, ...], name: str) -> AggregateSpec:
    """One call of a built-in function over the kernel's columns, without a FILTER."""
    return AggregateSpec(
        function=call.function,
        args=tuple(inputs[a].name for a in call.args),
        arg_types=tuple(arrow_type(inputs[a].type) for a in call.args),
        result=arrow_type(call.type),
        name=name,
        distinct=call.distinct,
        options=call.options,
    )


def _read(node: p.GroupAggregate, inputs: tuple[Field, ...]) -> dict[str, int]:
    """Each input column that the kernel needs, once, keys first: where it stands."""
    wanted = [*node.keys]
    for call in node.calls:
        wanted += [*call.args, *([] if call.filter is None else [call.filter])]
    read: dict[str, int] = {}
    for i in wanted:
        read.setdefault(inputs[i].name, i)
    return read


@doubtful.register
def _(node: p.GroupAggregate, place: int) -> bool:
    if place < len(node.keys):
        return doubtful(node.input, node.keys[place])
    return sum_overflows(node.calls[place - len(node.keys)], node.input.fields)


@doubtful.register
def _(node: p.AggregatePart, place: int) -> bool:
    return doubtful(node.input, node.columns[place])
