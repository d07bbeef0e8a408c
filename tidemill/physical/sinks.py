"""A sink's requirements on the plan: the kinds that it accepts, order per primary key, ON CONFLICT.

A sink that accepts +U without -U is keyed by its primary key. If an upsert key of the query is part of the
primary key, the changes of each key arrive in order and are written directly. Otherwise several rows may have
the same primary key, and the sink must keep them (upsertMaterialize). The row that arrived last wins, if
``traits.arrival`` knows the order; otherwise the greatest row by its columns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.config.option import Configuration
from tidemill.config.sink_options import REQUIRE_ON_CONFLICT, UPSERT_MATERIALIZE
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes import describe
from tidemill.physical.traits.arrival import Arrival, arrival
from tidemill.physical.traits.changelog_mode import Kinds, Updates
from tidemill.physical.traits.keys import Key
from tidemill.physical.tree import walk

_WORDS = {RowKind.UPDATE_AFTER: "update", RowKind.DELETE: "delete"}
_ACTIONS = {"NOTHING": "DO NOTHING", "ERROR": "DO ERROR", "DEDUPLICATE": "DO DEDUPLICATE"}


def check_sink(sink: p.Sink, config: Configuration) -> p.Sink:
    """``sink`` with ``materialize`` decided. Raises ValidationError if it cannot accept the changes
    or ON CONFLICT does not fit."""
    _check_kinds(sink)
    _check_conflict(sink)
    free = sink.conflict or _materialize_option(config) != "AUTO"
    if may_conflict(sink) and not free and config.read(REQUIRE_ON_CONFLICT):
        raise _conflict_required(sink)
    return replace(sink, materialize=_materializes(sink, config))


def sink_updates(sink: p.Sink) -> tuple[Updates, ...]:
    """The forms of updates that the sink accepts, best first."""
    if RowKind.UPDATE_BEFORE in sink.consumed:
        return (Updates.BOTH,)
    key = primary_key(sink)
    exact = key is None or key in sink.input.traits.upsert_keys
    return (Updates.AFTER, Updates.BOTH) if exact else (Updates.BOTH,)


def primary_key(sink: p.Sink) -> Key | None:
    """The sink's primary key as field indexes; None if it has none."""
    names = [f.name for f in sink.fields]
    key = sink.table.primary_key
    return frozenset(names.index(c) for c in key) if key else None


def _check_kinds(sink: p.Sink) -> None:
    hint = "Write to a sink that takes updates, or make the query append-only."
    _check_consumed(sink.input, sink.consumed, f"Table sink '{sink.table.path}'", hint)


def check_only_inserts(node: p.PhysicalNode) -> None:
    """Raises ValidationError if the input of FROM_CHANGELOG is not insert-only."""
    hint = "FROM_CHANGELOG reads append-only rows, each with the code of its change."
    _check_consumed(node, INSERT_ONLY, "FROM_CHANGELOG", hint)


def _check_consumed(node: p.PhysicalNode, consumed: Kinds, consumer: str, hint: str) -> None:
    refused = [k for k in _WORDS if k in node.traits.kinds and k not in consumed]
    if not refused:
        return
    words = " and ".join(_WORDS[k] for k in refused)
    culprit = producer(node, refused[0])
    raise ValidationError(
        f"{consumer} doesn't support consuming {words} changes which is produced by node {describe(culprit)}",
        hint=hint,
    )


@singledispatch
def producer(node: p.PhysicalNode, kind: RowKind) -> p.PhysicalNode:
    """The node that produces the changes of ``kind`` in the output of ``node``. By default ``node``."""
    return node


def producer_below(node: p.PhysicalNode, kind: RowKind) -> p.PhysicalNode:
    """The answer of a node that passes on changes."""
    return next(producer(i, kind) for i in node.inputs if kind in i.traits.kinds)


def _materialize_option(config: Configuration) -> str:
    return config.read(UPSERT_MATERIALIZE).upper()


def _materializes(sink: p.Sink, config: Configuration) -> bool:
    choice = _materialize_option(config)
    if choice == "FORCE":
        return primary_key(sink) is not None
    if sink.conflict in ("NOTHING", "ERROR"):
        return may_conflict(sink)
    return choice == "AUTO" and sink.input.traits.kinds != INSERT_ONLY and may_conflict(sink)


def keep_insert_only_rows(sink: p.Sink, config: Configuration) -> p.Sink:
    """The running sink: it also keeps insert-only rows if their order does not decide which row wins."""
    untold = may_conflict(sink) and arrival(sink.input) is Arrival.UNTOLD
    keeps = untold and _materialize_option(config) == "AUTO"
    return replace(sink, materialize=True) if keeps else sink


def may_conflict(sink: p.Sink) -> bool:
    """Whether rows with different upsert keys may have the same primary key of an upsert sink."""
    key = primary_key(sink)
    if key is None or sink.retract or sink.consumed == INSERT_ONLY:
        return False
    return not any(k <= key for k in sink.input.traits.upsert_keys)


def may_conflict_across_tasks(sink: p.Sink) -> bool:
    """Whether insert-only rows of parallel tasks may have the same primary key. The sink then gets only the
    last row per key of an epoch."""
    if sink.materialize or sink.input.traits.kinds != INSERT_ONLY or not may_conflict(sink):
        return False
    return any(isinstance(node, p.Exchange | p.Union) for node in walk(sink.input))


def keeps_greatest_row(sink: p.Sink) -> bool:
    """Whether the greatest row of a key wins in a sink that keeps rows, because their arrival is unknown."""
    return sink.materialize and may_conflict(sink) and arrival(sink.input) is not Arrival.SOURCE


def arrives_by_time(sink: p.Sink) -> bool:
    """Whether the conflicting rows are ordered by the watermark that released them."""
    return may_conflict_across_tasks(sink) and arrival(sink.input) is Arrival.EVENT_TIME


def _check_conflict(sink: p.Sink) -> None:
    if not sink.conflict:
        return
    if sink.retract:
        raise ValidationError(
            f"ON CONFLICT clause is only allowed for upsert sinks. The sink '{sink.table.path}' is not an "
            "upsert sink because it requires UPDATE_BEFORE (retract mode)."
        )
    if sink.consumed == INSERT_ONLY:
        raise ValidationError(
            f"ON CONFLICT clause is only allowed for upsert sinks. The sink '{sink.table.path}' is not an "
            "upsert sink because it only accepts INSERT (append-only) changes."
        )
    if sink.conflict in ("NOTHING", "ERROR"):
        _check_watermarks(sink)


def _check_watermarks(sink: p.Sink) -> None:
    missing = sorted(
        str(s.table.path)
        for s in walk(sink)
        if isinstance(s, p.TableSourceScan) and s.table.watermark is None
    )
    if missing:
        raise ValidationError(
            f"ON CONFLICT {_ACTIONS[sink.conflict]} requires all source tables to define watermarks, but the "
            f"following source(s) do not: {', '.join(missing)}. "
            "Please add a WATERMARK declaration to these tables."
        )


def _conflict_required(sink: p.Sink) -> ValidationError:
    names = [f.name for f in sink.input.fields]
    upsert = [", ".join(names[i] for i in sorted(k)) for k in sink.input.traits.upsert_keys]
    key_texts = ", ".join(f"[{k}]" for k in upsert)
    return ValidationError(
        "The query has an upsert key that differs from the primary key of the sink table "
        f"'{sink.table.path}'. Primary key: [{', '.join(sink.table.primary_key)}], upsert key: {key_texts}. "
        "This can lead to non-deterministic results when multiple records with different upsert keys map to "
        "the same primary key. Please specify an ON CONFLICT clause to define how conflicts should be "
        "handled: ON CONFLICT DO DEDUPLICATE (update to the latest record, state intensive, since we need to "
        "keep the entire history), or ON CONFLICT DO ERROR (fail on conflict), or ON CONFLICT DO NOTHING "
        "(keep first record)."
    )
