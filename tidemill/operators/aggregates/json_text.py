"""JSON_ARRAYAGG and JSON_OBJECTAGG: a group's values as JSON text, by arrival; members sorted by key.

Numbers print as Flink's do (1.0E+20), times in ISO form, bytes in Base64, maps as objects. The members of
JSON_OBJECTAGG are sorted by key; the same key twice, or a NULL key, is an error, as in Flink.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Vec, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.errors import ExecutionError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.arrivals import ArrivalsAccumulator, Bag, bag_of
from tidemill.operators.aggregates.collections import joined
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging


def json_arrayagg(spec: AggregateSpec, source: Source) -> Aggregate:
    """Default ABSENT ON NULL."""
    options = dict(spec.options)
    nulls = options.get("NULLS") == "NULL ON NULL"
    raw = bool(options.get("RAW"))
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=nulls)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        return _wrapped("[", joined(bag, json_values(bag.columns[0], raw), ","), "]")

    return Aggregate(spec, (arrivals,), result)


def json_objectagg(spec: AggregateSpec, source: Source) -> Aggregate:
    """Default NULL ON NULL."""
    options = dict(spec.options)
    absent = options.get("NULLS") == "ABSENT ON NULL"
    raw = bool(options.get("RAW"))
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=True)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        keys, values = bag.columns
        _check_keys(bag, keys)
        owners = bag.owners()
        if absent and values.null_count:
            not_null = np.flatnonzero(vector(values.is_valid()).values)
            picks = pa.array(not_null)
            keys, values, owners = keys.take(picks), values.take(picks), owners[not_null]
        by_key = pc.sort_indices(
            pa.table({"owner": owners, "key": keys}), [("owner", "ascending"), ("key", "ascending")]
        )
        keys, values = keys.take(by_key), values.take(by_key)
        bag = bag_of(owners, [keys, values], len(bag.offsets) - 1)
        members = pc.binary_join_element_wise(json_values(keys, False), json_values(values, raw), ":")
        return _wrapped("{", joined(bag, members, ","), "}")

    return Aggregate(spec, (arrivals,), result)


def _wrapped(left: str, inner: pa.Array, right: str) -> pa.Array:
    return pc.binary_join_element_wise(left, inner, right, "")


def _check_keys(bag: Bag, keys: pa.Array) -> None:
    if keys.null_count:
        raise ExecutionError("JSON_OBJECTAGG: a key is NULL. Keys must not be NULL.")
    identity = [to_arrow(Vec(bag.owners()), pa.int64()), keys]
    groups = group_rows(hash_columns(identity, len(keys)), identity)
    if groups.count < len(keys):
        again = int(groups.order[groups.starts[np.flatnonzero(groups.sizes > 1)[0]]])
        raise ExecutionError(
            f"Key '{keys[again].as_py()}' is already present. Duplicate keys are not allowed in "
            "JSON_OBJECTAGG. Please ensure that keys are unique."
        )


def json_values(column: pa.Array, raw: bool) -> pa.Array:
    """Each value as JSON text, NULL as ``null``. Every distinct value is written once."""
    kind = column.type
    if raw:
        encoded = column.cast(pa.string()).dictionary_encode()
        texts = pa.array([_sorted_json(text) for text in encoded.dictionary.to_pylist()], pa.string())
        return texts.take(encoded.indices).fill_null("null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string()).fill_null("null")
    if pa.types.is_nested(kind):
        write = _writer(kind)
        return pa.array([write(v) for v in column.to_pylist()], pa.string())
    encoded = column.dictionary_encode()
    texts = pa.array([_text(v) for v in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices).fill_null("null")


def _text(value: Any) -> str:
    return _WRITERS.get(type(value), quoted)(value)


def quoted(value: Any) -> str:
    """Text as a JSON string."""
    return json.dumps(str(value), ensure_ascii=False)


def _number(value: Decimal | float) -> str:
    """Java's BigDecimal text, as Python's Decimal prints it: 1.0E+20, 1E-7."""
    if isinstance(value, float):
        if not np.isfinite(value):
            return f'"{value}"'.replace("nan", "NaN").replace("inf", "Infinity")
        if value == 0 or 1e-3 <= abs(value) < 1e7:
            return repr(value)
        digits, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
        return str(Decimal(f"{digits if '.' in digits else digits + '.0'}E{exponent}"))
    return str(value)


def _moment(value: datetime.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat()
    if value.microsecond:
        text = text.rstrip("0")
    return f'"{text}{"Z" if value.tzinfo else ""}"'


def _writer(kind: pa.DataType) -> Callable[[Any], str]:
    """The function that writes a value of a nested type. A map is an array of (key, value) entries."""
    if pa.types.is_struct(kind):
        members = {f.name: _writer(f.type) for f in kind}
        return lambda row: "null" if row is None else _object({k: w(row[k]) for k, w in members.items()})
    if not pa.types.is_list(kind):
        return _text
    inner = kind.value_type
    if pa.types.is_struct(inner) and [f.name for f in inner] == ["key", "value"]:
        write = _writer(inner.field(1).type)
        return lambda entries: (
            "null" if entries is None else _object({e["key"]: write(e["value"]) for e in entries})
        )
    element = _writer(inner)
    return lambda values: "null" if values is None else "[" + ",".join(map(element, values)) + "]"


def _object(members: dict[Any, str]) -> str:
    """An object with its members sorted by key, as Flink's mapper sorts them at every level."""
    return "{" + ",".join(f"{quoted(key)}:{text}" for key, text in sorted(members.items())) + "}"


class _Number(str):
    """The text of a JSON number."""


def _sorted_json(text: str) -> str:
    """JSON text with its members sorted by key; numbers stay as they are."""
    return _rewritten(json.loads(text, parse_float=_Number, parse_int=_Number))


def _rewritten(value: Any) -> str:
    if isinstance(value, dict):
        return _object({key: _rewritten(member) for key, member in value.items()})
    if isinstance(value, list):
        return "[" + ",".join(map(_rewritten, value)) + "]"
    return value if isinstance(value, _Number) else _text(value)


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda v: "null",
    bool: lambda v: "true" if v else "false",
    int: str,
    float: _number,
    Decimal: _number,
    bytes: lambda v: f'"{base64.b64encode(v).decode()}"',
    datetime.datetime: _moment,
}


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="JSON_ARRAYAGG",
        build=json_arrayagg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="JSON_ARRAYAGG",
        over_no_rows="[]",
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=False,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=("json_arrayagg",),
            retract_buffers=("json_arrayagg",),
        ),
    ),
    AggregateDeclaration(
        name="JSON_OBJECTAGG",
        build=json_objectagg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="JSON_OBJECTAGG",
        over_no_rows="{}",
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=True,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=("json_objectagg",),
            retract_buffers=("json_objectagg",),
        ),
    ),
)
