"""Results of single aggregate functions that the twin does not know, and the edges of the others."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemill.errors import ExecutionError, NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.state.store import StateStore

TEXT, I32, I64, F64 = pa.string(), pa.int32(), pa.int64(), pa.float64()


class Run:
    """A global or keyed aggregation fed epoch by epoch; ``kinds`` as text, e.g. ``+I -D``."""

    def __init__(self, path: Path, spec: GroupAggregateSpec) -> None:
        self.path, self.spec = path, spec
        self.manifest: str | None = None
        self.number = 0

    def epoch(self, columns: dict[str, pa.Array], kinds: str = "", time: int = 0) -> list[tuple[Any, ...]]:
        size = len(next(iter(columns.values())))
        base = self.number * 100
        columns = {**columns, "$seq": pa.array(range(base, base + size), I64)}
        if kinds:
            codes = [("+I", "-U", "+U", "-D").index(k) for k in kinds.split()]
            columns["$kind"] = pa.array(codes, pa.int8())
        store = StateStore.open(str(self.path), "op", 0, self.manifest, self.number, now=time)
        context = EpochContext(epoch=self.number, time=time, partition=0)
        output = self.spec.step((pa.table(columns),), store, context)
        self.manifest = store.flush()
        self.number += 1
        names = [n for n in output.schema.names if n != "$kind"]
        kinds_ = output["$kind"].to_pylist() if "$kind" in output.schema.names else [0] * len(output)
        return [
            (("+I", "-U", "+U", "-D")[kind], *(row[n] for n in names))
            for kind, row in zip(kinds_, output.to_pylist(), strict=True)
        ]


def one(path: Path, call: AggregateSpec, **more: Any) -> Run:
    return Run(path, GroupAggregateSpec(keys=(), calls=(call,), **more))


def call(function: str, kinds: tuple[pa.DataType, ...], result: pa.DataType, **more: Any) -> AggregateSpec:
    args = tuple("abc"[: len(kinds)])
    return AggregateSpec(function=function, args=args, arg_types=kinds, result=result, name="r", **more)


def test_decimal_sum_is_null_only_while_beyond_38_digits(tmp_path: Path) -> None:
    kind = pa.decimal128(38, 0)
    run = one(tmp_path, call("SUM", (kind,), kind))
    big = Decimal(6 * 10**37)
    assert run.epoch({"a": pa.array([big], kind)}) == [("+I", big)]
    assert run.epoch({"a": pa.array([big], kind)}) == [("-U", big), ("+U", None)]
    assert run.epoch({"a": pa.array([big, -big], kind)}) == []
    assert run.epoch({"a": pa.array([-big, -big], kind)}) == [("-U", None), ("+U", Decimal(0))]


def test_decimal_sum_at_the_edge_is_exact(tmp_path: Path) -> None:
    kind = pa.decimal128(38, 0)
    run = one(tmp_path, call("SUM", (kind,), kind), retracts=True)
    top, nearly = Decimal(10**38 - 1), Decimal(10**38 - 6)
    rows = {"a": pa.array([nearly, Decimal(5)], kind)}
    assert run.epoch(rows) == [("+I", top)]
    assert run.epoch({"a": pa.array([nearly], kind)}, "-D") == [("-U", top), ("+U", Decimal(5))]


def test_decimal_average_rounds_half_up(tmp_path: Path) -> None:
    kind, result = pa.decimal128(10, 2), pa.decimal128(38, 6)
    run = one(tmp_path, call("AVG", (kind,), result))
    values = [Decimal("-0.01"), Decimal("0.00"), Decimal("0.00")]
    assert run.epoch({"a": pa.array(values, kind)}) == [("+I", Decimal("-0.003333"))]
    wide = pa.decimal128(38, 18)
    run = one(tmp_path / "wide", call("AVG", (wide,), wide))
    values = [Decimal("12345678901234567890.5"), Decimal("0.000000000000000003")]
    assert run.epoch({"a": pa.array(values, wide)}) == [
        ("+I", Decimal("6172839450617283945.250000000000000002"))
    ]


def test_variances_of_integers_are_cut_and_held_in_range(tmp_path: Path) -> None:
    run = one(tmp_path, call("VAR_POP", (I32,), I32))
    assert run.epoch({"a": pa.array([1, 2, 3, 4, 5, 6], I32)}) == [("+I", 2)]
    run = one(tmp_path / "big", call("VAR_POP", (I32,), I32))
    assert run.epoch({"a": pa.array([0, 2**31 - 1], I32)}) == [("+I", 2**31 - 1)]
    kind = pa.decimal128(38, 6)
    run = one(tmp_path / "decimal", call("STDDEV_SAMP", (pa.decimal128(10, 2),), kind))
    decimals = pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 2))
    assert run.epoch({"a": decimals}) == [("+I", Decimal("0.707107"))]


@pytest.mark.parametrize("retracts", [False, True])
def test_variances_far_from_zero(tmp_path: Path, retracts: bool) -> None:
    """Squares are large there, and their differences small."""
    far = 1_000_000_000
    run = one(tmp_path, call("VAR_POP", (F64,), F64), retracts=retracts)
    assert run.epoch({"a": pa.array([far + 1.0, far + 2.0, far + 3.0])}) == [("+I", pytest.approx(2 / 3))]
    assert run.epoch({"a": pa.array([far + 6.0])})[1] == ("+U", 3.5)
    run = one(tmp_path / "same", call("STDDEV_POP", (F64,), F64), retracts=retracts)
    assert run.epoch({"a": pa.array([1e17 + 16] * 7)}) == [("+I", 0.0)]
    run = one(tmp_path / "whole", call("VAR_SAMP", (I64,), I64), retracts=retracts)
    assert run.epoch({"a": pa.array([far + 1, far + 2, far + 6], I64)}) == [("+I", 7)]
    kind, small = pa.decimal128(38, 6), pa.decimal128(20, 2)
    run = one(tmp_path / "decimal", call("VAR_POP", (small,), kind), retracts=retracts)
    values = pa.array([Decimal(f"{far}.{n}0") for n in (1, 3)], small)
    assert run.epoch({"a": values}) == [("+I", Decimal("0.010000"))]


def test_variances_of_small_integers_are_cast_as_java_casts(tmp_path: Path) -> None:
    run = one(tmp_path, call("VAR_SAMP", (pa.int8(),), pa.int8()))
    assert run.epoch({"a": pa.array([100, -100, 120], pa.int8())}) == [("+I", -48)]


@pytest.mark.parametrize("per_record", [False, True])
def test_the_largest_bigint_is_found_among_the_smallest(tmp_path: Path, per_record: bool) -> None:
    least, most = -(2**63), 2**63 - 1
    run = one(tmp_path, call("MAX", (I64,), I64), retracts=True, per_record=per_record)
    assert run.epoch({"a": pa.array([least], I64)}) == [("+I", least)]
    assert run.epoch({"a": pa.array([5], I64)}) == [("-U", least), ("+U", 5)]
    assert run.epoch({"a": pa.array([most], I64)}) == [("-U", 5), ("+U", most)]
    assert run.epoch({"a": pa.array([most], I64)}, "-D") == [("-U", most), ("+U", 5)]


def test_extremes_of_floats_go_by_their_order(tmp_path: Path) -> None:
    values = pa.array([0.0, float("nan"), -0.0, -1.5])
    run = one(tmp_path / "most", call("MAX", (F64,), F64))
    assert repr(run.epoch({"a": values})) == "[('+I', nan)]"
    run = one(tmp_path / "least", call("MIN", (F64,), F64))
    assert repr(run.epoch({"a": values.slice(0, 3)})) == "[('+I', -0.0)]"


@pytest.mark.parametrize("function", ["SUM", "AVG"])
def test_the_sum_of_negative_zeros(tmp_path: Path, function: str) -> None:
    """As in batch."""
    run = one(tmp_path, call(function, (F64,), F64))
    assert repr(run.epoch({"a": pa.array([-0.0, -0.0])})) == "[('+I', 0.0)]"


def test_values_that_print_differently_are_a_change(tmp_path: Path) -> None:
    run = one(tmp_path, call("LAST_VALUE", (F64,), F64))
    run.epoch({"a": pa.array([-0.0])})
    assert repr(run.epoch({"a": pa.array([0.0])})) == "[('-U', -0.0), ('+U', 0.0)]"
    assert repr(run.epoch({"a": pa.array([float("nan")])})) == "[('-U', 0.0), ('+U', nan)]"
    assert run.epoch({"a": pa.array([float("nan")])}) == []


def test_a_float_sum_comes_back_from_where_it_was(tmp_path: Path) -> None:
    run = one(tmp_path, call("SUM", (F64,), F64), retracts=True)
    assert run.epoch({"a": pa.array([0.1, 0.2, 0.3])}) == [("+I", 0.6)]
    huge = pa.array([1e30, float("inf"), float("nan")])
    assert repr(run.epoch({"a": huge})) == "[('-U', 0.6), ('+U', nan)]"
    assert repr(run.epoch({"a": huge.slice(2)}, "-D")) == "[('-U', nan), ('+U', inf)]"
    assert run.epoch({"a": huge.slice(1, 1)}, "-D") == [("-U", float("inf")), ("+U", 1e30)]
    assert run.epoch({"a": huge.slice(0, 1)}, "-D") == [("-U", 1e30), ("+U", 0.6)]


def test_a_float_sum_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    values = [10.0**n * sign for n in range(-8, 9) for sign in (1.1, -0.3, 0.7)]
    sums = set()
    for number, step in enumerate((1, 5, 7, 25, -1)):
        run = one(tmp_path / str(number), call("SUM", (F64,), F64))
        order = [values[i * step % len(values)] for i in range(len(values))]
        sums.add(run.epoch({"a": pa.array(order)})[0][1])
    assert sums == {math.fsum(values)}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([datetime.date(2020, 1, 2), datetime.date(1969, 1, 1)], pa.date32()),
        ([datetime.datetime(2020, 1, 2), datetime.datetime(1969, 1, 1)], pa.timestamp("us")),
        (["b", "a"], TEXT),
        (["\U0001f600", "\uffff"], TEXT),
        ([b"\xff", b"\x01"], pa.binary()),
        ([True, False], pa.bool_()),
        ([Decimal("3.5"), Decimal("-3.5")], pa.decimal128(38, 1)),
    ],
)
@pytest.mark.parametrize("retracts", [False, True])
def test_extremes_of_all_types(tmp_path: Path, values: list[Any], kind: pa.DataType, retracts: bool) -> None:
    high, low = values
    run = one(tmp_path, call("MIN", (kind,), kind), retracts=retracts)
    assert run.epoch({"a": pa.array([high, None], kind)}) == [("+I", high)]
    assert run.epoch({"a": pa.array([low, high], kind)}) == [("-U", high), ("+U", low)]
    if retracts:
        assert run.epoch({"a": pa.array([low], kind)}, "-D") == [("-U", low), ("+U", high)]


def test_collect_counts_copies(tmp_path: Path) -> None:
    result = pa.list_(pa.struct([("key", TEXT), ("value", I32)]))
    run = one(tmp_path, call("COLLECT", (TEXT,), result), retracts=True)
    ((_, first),) = run.epoch({"a": pa.array(["x", None, "x", "y"], TEXT)})
    assert sorted((e["key"], e["value"]) for e in first) == [("x", 2), ("y", 1)]
    changes = run.epoch({"a": pa.array(["x", "y"], TEXT)}, "-D -D")
    assert changes[1] == ("+U", [{"key": "x", "value": 1}])
    assert run.epoch({"a": pa.array(["x"], TEXT)}, "-D") == [
        ("-U", [{"key": "x", "value": 1}]),
        ("+U", []),
    ]


def test_percentile_interpolates(tmp_path: Path) -> None:
    several = call("PERCENTILE", (I32, pa.list_(F64)), pa.list_(F64))
    run = one(tmp_path, several, retracts=True)
    fractions = pa.array([[0.0, 0.25, 1.0]] * 3, pa.list_(F64))
    assert run.epoch({"a": pa.array([10, None, 20], I32), "b": fractions}) == [("+I", [10.0, 12.5, 20.0])]
    gone = run.epoch({"a": pa.array([10, 20], I32), "b": fractions.slice(0, 2)}, "-D -D")
    assert gone[1] == ("+U", None)
    weighted = call("PERCENTILE", (I32, F64, I32), F64)
    run = one(tmp_path / "weighted", weighted)
    columns = {"a": pa.array([1, 2], I32), "b": pa.array([0.3, 0.3]), "c": pa.array([2, 2], I32)}
    ((kind, value),) = run.epoch(columns)
    assert (kind, round(value, 9)) == ("+I", 1.0)


JSON_VALUES = [
    (pa.array([1.0, 1e20, None, 1e-7, 0.1]), "[1.0,1.0E+20,1.0E-7,0.1]"),
    (pa.array([Decimal("1.50"), Decimal("-2.05")], pa.decimal128(10, 2)), "[1.50,-2.05]"),
    (pa.array([True, None, False]), "[true,false]"),
    (pa.array(['b"q/é\n', "a"]), '["b\\"q/é\\n","a"]'),
    (pa.array([datetime.datetime(2020, 1, 1, 0, 0, 1, 500000)]), '["2020-01-01T00:00:01.5"]'),
    (pa.array([[1, None], []], pa.list_(I32)), "[[1,null],[]]"),
    (pa.array([{"z": 1, "a": None}], pa.struct([("z", I32), ("a", TEXT)])), '[{"a":null,"z":1}]'),
    (
        pa.array([[{"key": "p", "value": 1}], None], pa.list_(pa.struct([("key", TEXT), ("value", I32)]))),
        '[{"p":1}]',
    ),
    (pa.array([1 / 3], pa.float32()), "[0.3333333432674408]"),
]


@pytest.mark.parametrize(("values", "text"), JSON_VALUES)
def test_json_arrayagg_writes_values_as_flink_does(tmp_path: Path, values: pa.Array, text: str) -> None:
    run = one(tmp_path, call("JSON_ARRAYAGG", (values.type,), TEXT))
    assert run.epoch({"a": values}) == [("+I", text)]


def test_json_aggregates_and_nulls(tmp_path: Path) -> None:
    with_nulls = call("JSON_ARRAYAGG", (I32,), TEXT, options=(("NULLS", "NULL ON NULL"),))
    assert one(tmp_path / "1", with_nulls).epoch({"a": pa.array([1, None], I32)}) == [("+I", "[1,null]")]
    columns = {"a": pa.array(["l", "k"]), "b": pa.array([2, None], I32)}
    objects = call("JSON_OBJECTAGG", (TEXT, I32), TEXT)
    assert one(tmp_path / "2", objects).epoch(columns) == [("+I", '{"k":null,"l":2}')]
    raw = call("JSON_ARRAYAGG", (TEXT,), TEXT, options=(("RAW", "TRUE"),))
    texts = pa.array(['{"z":1.50,"a":[true,{"c":"é","b":null}]}', None])
    assert one(tmp_path / "5", raw).epoch({"a": texts}) == [
        ("+I", '[{"a":[true,{"b":null,"c":"é"}],"z":1.50}]')
    ]
    absent = call("JSON_OBJECTAGG", (TEXT, I32), TEXT, options=(("NULLS", "ABSENT ON NULL"),))
    assert one(tmp_path / "3", absent).epoch(columns) == [("+I", '{"l":2}')]
    with pytest.raises(ExecutionError, match="Key 'k' is already present"):
        one(tmp_path / "4", objects).epoch({"a": pa.array(["k", "k"]), "b": pa.array([1, 2], I32)})


def test_nested_columns_may_differ_in_nullability_from_their_declaration(tmp_path: Path) -> None:
    """Spark marks the members of a map's entries NOT NULL; state does not."""
    declared = pa.list_(pa.struct([("key", TEXT), ("value", I32)]))
    strict = pa.list_(pa.struct([pa.field("key", TEXT, nullable=False), ("value", I32)]))
    run = one(tmp_path, call("LAST_VALUE", (declared,), declared), retracts=True)
    value = [{"key": "k", "value": 1}]
    assert run.epoch({"a": pa.array([value], strict)}) == [("+I", value)]
    other = [{"key": "l", "value": 1}]
    assert run.epoch({"a": pa.array([other], strict)}) == [("-U", value), ("+U", other)]


def test_per_record_the_changes_of_a_row_follow_each_other_at_its_place(tmp_path: Path) -> None:
    run = one(tmp_path, call("SUM", (I32,), I32), per_record=True, sequence=True)
    assert run.epoch({"a": pa.array([5, 1], I32)}) == [("+I", 5, 0), ("-U", 5, 1), ("+U", 6, 1)]
    assert run.epoch({"a": pa.array([2], I32)}) == [("-U", 6, 100), ("+U", 8, 100)]


def test_with_ttl_equal_results_are_shown_again_per_record(tmp_path: Path) -> None:
    values = {"a": pa.array([5, 5], I32)}
    run = one(tmp_path, call("MAX", (I32,), I32), per_record=True, state_ttl=1000)
    assert run.epoch(values) == [("+I", 5), ("-U", 5), ("+U", 5)]
    distinct = GroupAggregateSpec(keys=(("a", I32),), per_record=True, state_ttl=1000)
    assert Run(tmp_path / "distinct", distinct).epoch(values) == [("+I", 5), ("-U", 5), ("+U", 5)]


def test_single_value_refuses_a_second_row(tmp_path: Path) -> None:
    run = one(tmp_path, call("SINGLE_VALUE", (I32,), I32))
    assert run.epoch({"a": pa.array([4], I32)}) == [("+I", 4)]
    with pytest.raises(ExecutionError, match="more than one element"):
        run.epoch({"a": pa.array([4], I32)})


def test_unknown_function_is_named() -> None:
    with pytest.raises(NotSupportedError, match="MEDIANISH"):
        _ = GroupAggregateSpec(keys=(), calls=(call("MEDIANISH", (I32,), I32),)).accumulators


def test_expired_groups_start_anew(tmp_path: Path) -> None:
    total = call("SUM", (I32,), I32)
    distinct = AggregateSpec(
        function="COUNT", args=("a",), arg_types=(I32,), result=I64, name="d", distinct=True
    )
    least = call("MIN", (I32,), I32)
    calls = (total, distinct, AggregateSpec(**{**_fields(least), "name": "m"}))
    run = Run(tmp_path, GroupAggregateSpec(keys=(), calls=calls, state_ttl=10, retracts=True))
    assert run.epoch({"a": pa.array([1, 2], I32)}, time=0) == [("+I", 3, 2, 1)]
    assert run.epoch({"a": pa.array([2], I32)}, time=9) == [("-U", 3, 2, 1), ("+U", 5, 2, 1)]
    assert run.epoch({"a": pa.array([7], I32)}, time=18) == [("-U", 5, 2, 1), ("+U", 12, 3, 1)]
    assert run.epoch({"a": pa.array([7], I32)}, time=28) == [("+I", 7, 1, 7)]


def _fields(spec: AggregateSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in AggregateSpec.__slots__}


def test_local_phase_gives_the_same_as_raw_rows(tmp_path: Path) -> None:
    decimals = pa.decimal128(10, 2)
    kinds = {"v": I32, "x": F64, "d": decimals, "s": TEXT}
    wanted = [
        ("COUNT", None, I64),
        ("COUNT", "v", I64),
        ("SUM", "v", I32),
        ("AVG", "x", F64),
        ("SUM", "d", pa.decimal128(38, 2)),
        ("VAR_POP", "x", F64),
        ("MIN", "s", TEXT),
        ("MAX", "v", I32),
    ]
    calls = tuple(
        AggregateSpec(
            function=f,
            args=() if a is None else (a,),
            arg_types=() if a is None else (kinds[a],),
            result=r,
            name=f"{f}{a}",
        )
        for f, a, r in wanted
    )
    spec = GroupAggregateSpec(keys=(("k", TEXT),), calls=calls)
    merged = GroupAggregateSpec(keys=(("k", TEXT),), calls=calls, partial_input=True)
    assert spec.combinable
    tables = [
        pa.table(
            {
                "k": pa.array(["a", "b", None, "a"]),
                "v": pa.array([i, None, 3, -i], I32),
                "x": pa.array([1.0, 2.0, None, i * 1.0]),
                "d": pa.array([Decimal(i), None, Decimal("0.01"), Decimal(-5)], decimals),
                "s": pa.array([None, "z", "", f"s{i}"]),
            }
        )
        for i in range(3)
    ]
    raw = StateStore.open(str(tmp_path / "raw"), "op", 0, None, 0)
    folded = StateStore.open(str(tmp_path / "folded"), "op", 0, None, 0)
    context = EpochContext(epoch=0, time=0, partition=0)
    expected = spec.step((pa.concat_tables(tables),), raw, context)
    partial = [spec.combine(t) for t in tables]
    assert all(p.schema.equals(spec.local_schema()) and len(p) == 3 for p in partial)
    assert merged.step((pa.concat_tables(partial),), folded, context).equals(expected)
    assert merged.fingerprint == spec.fingerprint
