"""Reading collections: element access, sizes, keys and values, and building maps from parts.

A MAP is carried as an array of (key, value) entries, so keys may be NULL and are compared with ``<=>``.
An index or key that is not there gives NULL, also where the elements are NOT NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.coercion import common_type
from tidemill.functions.sharing import share
from tidemill.functions.signatures import ARRAY, MAP, check_count, fixed, kind_of, mismatch, signature
from tidemill.functions.spark_text import keep, quoted, template
from tidemill.functions.values import by_key, marked
from tidemill.types import logical as t

_SIZED = kind_of("<COLLECTION>", ARRAY, MAP)
_SIZED_FORMS = "CARDINALITY(<MULTISET>)'\n'CARDINALITY(<ARRAY>)'\n'CARDINALITY(<MAP>)"
_ITEM_FORMS = (
    "<ARRAY>[<INTEGER>]\n<MAP>[<ANY>]\n<ROW>[<CHARACTER>|<INTEGER>]\n<VARIANT>[<CHARACTER>|<INTEGER>]"
)


def _resolve_item(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """array[index from 1] or map[key]."""
    check_count("ITEM", len(arguments), 2, 2)
    collection, index = arguments[0].type, arguments[1].type
    if isinstance(collection, t.ArrayType) and isinstance(index, (*t.INTEGER_TYPES, t.NullType)):
        _check_index(arguments[1])
        number = index if isinstance(index, t.INTEGER_TYPES) else t.INT
        return Resolved(arg_types=(collection, number), result=collection.element.with_nullable(True))
    if isinstance(collection, t.MapType) and common_type((collection.key, index)) is not None:
        key = collection.key.with_nullable(True) if isinstance(index, t.NullType) else index
        return Resolved(arg_types=(collection, key), result=collection.value.with_nullable(True))
    raise mismatch("ITEM", arguments, _ITEM_FORMS)


def _check_index(index: Argument) -> None:
    if isinstance(index.literal, int) and index.literal < 1:
        raise SignatureError(f"Array element access needs an index starting at 1 but was {index.literal}.")


def _item(call: SparkCall) -> str:
    collection, index = call.args
    if isinstance(call.arg_types[0], t.ArrayType):
        return f"get({collection}, CAST({index} AS INT) - 1)"
    return f"get({keep(collection, lambda e: f'{e}.key <=> {index}', role='m')}, 0).value"


_resolve_array_or_map = signature("CARDINALITY", _SIZED, result=fixed(t.INT), forms=_SIZED_FORMS)


def _resolve_cardinality(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    """Flink lists MULTISET among what it takes, and has no code for it."""
    kind = arguments[0].type if arguments else t.INT
    if isinstance(kind, t.MultisetType):
        raise NotSupportedError(
            f"CARDINALITY of a {kind.text()} is not supported: Expect an array or a map.",
            hint="COUNT(x) beside COLLECT(x) is how many elements it has.",
        )
    return _resolve_array_or_map(arguments, options)


def _resolve_element(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("ELEMENT", len(arguments), 1, 1)
    kind = arguments[0].type
    if isinstance(kind, t.MultisetType):
        raise NotSupportedError(
            f"ELEMENT of a {kind.text()} is not supported: Array expression type expected."
        )
    if not isinstance(kind, t.ArrayType):
        raise mismatch("ELEMENT", arguments, "ELEMENT(<ARRAY>)'\n'ELEMENT(<MULTISET>)")
    return Resolved(arg_types=(kind,), result=kind.element)


def _element(call: SparkCall) -> str:
    """The only element, NULL of an empty array."""
    error = "raise_error('Array has more than one element.')"
    return share(call.args[0], lambda a: f"CASE WHEN array_size({a}) > 1 THEN {error} ELSE get({a}, 0) END")


def _map_argument(name: str, arguments: tuple[Argument, ...]) -> t.MapType:
    check_count(name, len(arguments), 1, 1)
    kind = arguments[0].type
    if not isinstance(kind, t.MapType):
        raise SignatureError(f"Invalid input arguments. Expected {name}(<MAP>)")
    return kind


def _resolve_keys(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    kind = _map_argument("MAP_KEYS", arguments)
    return Resolved(arg_types=(kind,), result=t.ArrayType(element=kind.key, nullable=kind.nullable))


def _resolve_values(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    kind = _map_argument("MAP_VALUES", arguments)
    return Resolved(arg_types=(kind,), result=t.ArrayType(element=kind.value, nullable=kind.nullable))


def _resolve_entries(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """The carrier of a map is the carrier of its entries."""
    kind = _map_argument("MAP_ENTRIES", arguments)
    entry = t.RowType(fields=(t.Field("key", kind.key), t.Field("value", kind.value)))
    return Resolved(arg_types=(kind,), result=t.ArrayType(element=entry, nullable=kind.nullable))


def _resolve_from_arrays(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("MAP_FROM_ARRAYS", len(arguments), 2, 2)
    keys, values = (a.type for a in arguments)
    if not isinstance(keys, t.ArrayType) or not isinstance(values, t.ArrayType):
        raise SignatureError("Invalid input arguments. Expected MAP_FROM_ARRAYS(<ARRAY>, <ARRAY>)")
    null = keys.nullable or values.nullable
    return Resolved(
        arg_types=(keys, values), result=t.MapType(key=keys.element, value=values.element, nullable=null)
    )


def _from_arrays(call: SparkCall) -> str:
    keys, values = call.args
    return by_key(share(keys, lambda k: share(values, lambda v: _zipped(k, v))), call.result)


def _zipped(keys: str, values: str) -> str:
    lengths = f"array_size({keys}), ' is not equal to the length of the values array ', array_size({values})"
    message = quoted("Invalid function MAP_FROM_ARRAYS call:\nThe length of the keys array ")
    return (
        f"CASE WHEN array_size({keys}) <> array_size({values}) "
        f"THEN raise_error(concat({message}, {lengths})) "
        f"ELSE zip_with({keys}, {values}, (zk, zv) -> named_struct('key', zk, 'value', zv)) END"
    )


def _resolve_union(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("MAP_UNION", len(arguments), 1, None)
    types = tuple(a.type for a in arguments)
    if not all(isinstance(kind, t.MapType) for kind in types):
        raise SignatureError("Invalid input arguments. Expected MAP_UNION(<MAP>, ...)")
    common = common_type(types)
    if common is None:
        raise SignatureError(
            f"Could not find a common type for arguments: [{', '.join(str(kind) for kind in types)}]"
        )
    return Resolved(
        arg_types=tuple(common.with_nullable(kind.nullable) for kind in types),
        result=common.with_nullable(any(kind.nullable for kind in types)),
    )


def _map_union(call: SparkCall) -> str:
    """Of equal keys the last map's entry stays."""
    assert isinstance(call.result, t.MapType)
    merged, *others = call.args
    for later in others:
        merged = share(later, partial(_merged, call.result.key, merged))
    return by_key(merged, call.result) if others else merged


def _merged(key: t.LogicalType, earlier: str, later: str) -> str:
    def comes_again(entry: str) -> str:
        return f"exists({later}, x -> {marked('x.key', key)} <=> {marked(f'{entry}.key', key)})"

    return f"concat({keep(earlier, lambda e: f'NOT {comes_again(e)}', role='u')}, {later})"


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="ITEM", resolve=_resolve_item, spark=_item),
    ScalarFunction(
        name="CARDINALITY",
        resolve=_resolve_cardinality,
        spark=template("array_size({0})"),
    ),
    ScalarFunction(name="ELEMENT", resolve=_resolve_element, spark=_element),
    ScalarFunction(name="MAP_KEYS", resolve=_resolve_keys, spark=template("({0}).key")),
    ScalarFunction(name="MAP_VALUES", resolve=_resolve_values, spark=template("({0}).value")),
    ScalarFunction(name="MAP_ENTRIES", resolve=_resolve_entries, spark=template("{0}")),
    ScalarFunction(name="MAP_FROM_ARRAYS", resolve=_resolve_from_arrays, spark=_from_arrays),
    ScalarFunction(name="MAP_UNION", resolve=_resolve_union, spark=_map_union),
)
