"""What kernels refuse, and how expressions over Arrow are evaluated."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.functions.array_calls import NAMES, call, cast, column, constant, translated
from tidemill.connectors.api import ArrowSource
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.generated import GeneratedSource
from tidemill.connectors.kafka.source import KafkaSource
from tidemill.connectors.registry import connector
from tidemill.functions.arrays.api import Inexact
from tidemill.functions.arrays.expressions import Projection, Rows
from tidemill.plan import expressions as x
from tidemill.runtime.array_expressions import projection
from tidemill.types import logical as t


def values(made: Projection | None, **columns: pa.Array) -> list[list[object]]:
    """Evaluated after a way through a pickle."""
    assert made is not None
    sent: Projection = pickle.loads(pickle.dumps(made))
    (count,) = {len(c) for c in columns.values()}
    return [a.to_pylist() for a in sent.arrays(sent.filtered(Rows(count, columns)))]


def value(expr: x.Expr, **columns: pa.Array) -> list[object]:
    return values(translated(expr), **columns)[0]


def test_zero_divisors_and_other_letters_are_refused() -> None:
    zero = pa.array([0, None], pa.int32())
    for expr in (call("/", "i", "j"), call("%", "i", "j")):
        with pytest.raises(Inexact):
            value(expr, i=pa.array([1, 2], pa.int32()), j=zero)
        assert value(expr, i=pa.array([None, 2], pa.int32()), j=zero) == [None, None]
    with pytest.raises(Inexact):
        value(call("UPPER", "t"), t=pa.array(["a", "ß"]))
    with pytest.raises(Inexact):
        value(cast("w", t.DecimalType(precision=20, scale=2)), w=pa.array([10**27], pa.decimal128(38, 10)))


def test_a_branch_is_evaluated_for_its_rows() -> None:
    guarded = call("CASE", call("=", "j", 0), "i", call(">", "j", 5), -1, call("/", "i", "j"))
    i, j = pa.array([7, 8, 9, 10], pa.int32()), pa.array([0, 2, 6, None], pa.int32())
    assert value(guarded, i=i, j=j) == [7, 4, -1, None]


def test_only_rows_that_pass_are_computed() -> None:
    shared = call("/", "i", "j")
    made = projection(call("<>", "j", 0), (shared, call("+", shared, 1), column("t")), NAMES, "UTC")
    assert made is not None
    assert made.names == ("i", "j", "t")
    i, j = pa.array([7, 8, None], pa.int32()), pa.array([0, 2, 3], pa.int32())
    assert values(made, i=i, j=j, t=pa.array(["a", "b", None])) == [[4, None], [5, None], ["b", None]]


@pytest.mark.parametrize(
    "pattern", ["a.b", "a$", r"\d", "a{2}", "(a|b)*", "a*?", "a++", "[[a]", "[z-a]", "(?i)a", ""]
)
def test_patterns_that_engines_may_read_differently_have_no_kernel(pattern: str) -> None:
    assert translated(call("REGEXP", "t", pattern)) is None


def test_groups_that_may_take_no_part_have_no_kernel() -> None:
    assert translated(call("REGEXP_EXTRACT", "t", "(a)|b", 1)) is None
    assert translated(call("REGEXP_EXTRACT", "t", "(?:(a)|b)c", 1)) is None
    assert translated(call("REGEXP_EXTRACT", "t", "(a)(b|c)", 3)) is None
    assert value(call("REGEXP_EXTRACT", "t", "(a|x)(b*)", 2), t=pa.array(["xbb", "a", "c"])) == [
        "bb",
        "",
        None,
    ]


def test_what_has_no_kernel() -> None:
    nothing = (
        call("LIKE", "t", "a_"),
        call("LIKE", "t", "a%b%c"),
        call("SPLIT_INDEX", "t", "ab", 0),
        call("DATE_FORMAT", "g", "MMM"),
        call("/", "m", "n"),
        call("INITCAP", "t"),
        cast("d", t.DecimalType(precision=10, scale=2)),
        cast("v", t.CharType(length=3)),
    )
    assert [translated(expr) for expr in nothing] == [None] * len(nothing)


def test_a_column_by_itself_is_not_computed() -> None:
    assert projection(None, (column("i"),), NAMES, "UTC") is None


def test_local_times_need_no_zone_instants_do() -> None:
    for name, known in (("g", True), ("l", False)):
        made = projection(None, (call("HOUR", name),), NAMES, "Europe/Berlin")
        assert (made is not None) == known


def test_times_of_sources_come_in_any_unit() -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5)
    assert value(call("HOUR", "g"), g=pa.array([moment, None], pa.timestamp("ms"))) == [3, None]
    row = t.RowType(fields=(t.Field("at", t.TimestampType(precision=3)),))
    field = x.FieldAccess(type=row.fields[0].type, operand=x.InputRef(type=row, index=0), index=0)
    hour = x.Call(type=t.BIGINT, function="HOUR", args=(field,))
    rows = pa.array([{"at": moment}, None, {"at": None}], pa.struct([("at", pa.timestamp("ms"))]))
    assert values(projection(None, (hour,), ("e",), "UTC"), e=rows) == [[3, None, None]]


def test_deep_expressions_stay_in_the_jvm() -> None:
    expr = column("i")
    for _ in range(100):
        expr = call("+", expr, 1)
    assert translated(expr) is None


def test_connectors_say_which_sources_make_arrow() -> None:
    made = {
        "filesystem": FileSource,
        "datagen": GeneratedSource,
        "nexmark": GeneratedSource,
        "kafka": KafkaSource,
    }
    assert all(issubclass(source, ArrowSource) for source in made.values())
    assert all(connector({"connector": name}).gives_arrow() for name in made)
    assert not connector({"connector": "jdbc"}).gives_arrow()


def test_casts_of_constants() -> None:
    """A constant that the kernels cannot treat exactly has no kernels."""
    stamp = x.Literal(type=t.TimestampType(precision=3), value=dt.datetime(2024, 5, 1, 12, 30))
    day = x.Literal(type=t.DATE, value=dt.date(2024, 5, 1))
    made = [cast(stamp, t.STRING), cast(stamp, t.DATE), cast(day, t.STRING), cast(constant(1), t.STRING)]
    shown = [values(projection(None, (expr,), ("i",), "UTC"), i=pa.array([1]))[0] for expr in made]
    assert shown == [["2024-05-01 12:30:00.000"], [dt.date(2024, 5, 1)], ["2024-05-01"], ["1"]]
    large = x.Literal(type=t.DecimalType(precision=38, scale=2), value=Decimal(10**30))
    assert projection(None, (cast(large, t.DecimalType(precision=38, scale=1)),), ("i",), "UTC") is None


def test_texts_of_timestamps_have_the_digits_of_their_type() -> None:
    stamps = pa.array([0, 1_714_521_599_987_654, None]).cast(pa.timestamp("us"))
    shown = {}
    for digits in (1, 3, 9):
        ref = x.InputRef(type=t.TimestampType(precision=digits), index=0)
        made = projection(None, (cast(ref, t.STRING),), ("g",), "UTC")
        shown[digits] = [v if v is None else str(v)[19:] for v in values(made, g=stamps)[0]]
    assert shown == {1: [".0", ".9", None], 3: [".000", ".987", None], 9: [".000000000", ".987654000", None]}


def test_texts_of_times_outside_of_four_digits_are_refused() -> None:
    day, stamp = cast("k", t.STRING), cast("g", t.STRING)
    far = pa.array([None, 2_932_897], pa.int32())
    with pytest.raises(Inexact):
        value(day, k=far.cast(pa.date32()))
    with pytest.raises(Inexact):
        value(stamp, g=pa.array([253_402_300_800_000_000]).cast(pa.timestamp("us")))
    assert value(day, k=pa.array([None, 2_932_896], pa.int32()).cast(pa.date32())) == [None, "9999-12-31"]
