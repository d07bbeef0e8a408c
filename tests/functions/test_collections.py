"""Array and map functions: NULL elements, bounds, equal keys."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.functions.evaluating import Case, Typed, check, resolve
from tidemill.functions.api import SignatureError
from tidemill.types import logical as t


def _cases(name: str, *rows: tuple[tuple[object, ...], object]) -> list[Case]:
    return [Case(name, args, expected) for args, expected in rows]


_INT = t.IntType(nullable=False)
_MAP = t.MapType(key=t.STRING, value=_INT, nullable=False)


def _ints(*values: int | None) -> Typed:
    text = ", ".join("NULL" if v is None else str(v) for v in values)
    element = t.INT if None in values else _INT
    return Typed(f"CAST(array({text}) AS ARRAY<INT>)", t.ArrayType(element=element, nullable=False))


def _texts(*values: str | None) -> Typed:
    text = ", ".join("NULL" if v is None else f"'{v}'" for v in values)
    return Typed(f"CAST(array({text}) AS ARRAY<STRING>)", t.ArrayType(element=t.STRING, nullable=False))


def _map(**entries: int) -> Typed:
    text = ", ".join(f"named_struct('key', '{k}', 'value', {v})" for k, v in entries.items())
    return Typed(f"array({text})", _MAP)


NULL_ARRAY = Typed("CAST(NULL AS ARRAY<INT>)", t.ArrayType(element=t.INT))
NULL_INT = Typed("CAST(NULL AS INT)", t.INT)
HOLED = _ints(3, None, 1)
THREE = _ints(1, 2, 3)

ARRAYS = [
    *_cases(
        "ARRAY_APPEND",
        ((_ints(1), 2), [1, 2]),
        ((_ints(1), NULL_INT), [1, None]),
        ((NULL_ARRAY, 1), None),
    ),
    *_cases("ARRAY_PREPEND", ((_ints(1), 2), [2, 1]), ((_ints(1), NULL_INT), [None, 1])),
    *_cases("ARRAY_CONCAT", ((_ints(1), _ints(2), _ints(3)), [1, 2, 3]), ((_ints(1), NULL_ARRAY), None)),
    *_cases(
        "ARRAY_CONTAINS",
        ((HOLED, 3), True),
        ((HOLED, NULL_INT), True),
        ((HOLED, 5), False),
        ((NULL_ARRAY, 5), None),
    ),
    *_cases("ARRAY_CONTAINS", ((_ints(1), NULL_INT), False)),
    *_cases("ARRAY_POSITION", ((_ints(1, 3, 3), 3), 2), ((HOLED, 9), 0), ((HOLED, NULL_INT), None)),
    *_cases(
        "ARRAY_REMOVE",
        ((HOLED, 3), [None, 1]),
        ((HOLED, NULL_INT), [3, 1]),
        ((NULL_ARRAY, 3), None),
    ),
    *_cases(
        "ARRAY_EXCEPT",
        ((_ints(1, 1, 2, 3), _ints(2)), [1, 3]),
        ((_ints(None, 1, None), _ints(2)), [None, 1]),
    ),
    *_cases("ARRAY_INTERSECT", ((_ints(3, 1, 1), _ints(1, 3)), [3, 1]), ((HOLED, _ints(None)), [None])),
    *_cases("ARRAY_UNION", ((_ints(1, 1, 2), _ints(2, 3, 3)), [1, 2, 3]), ((HOLED, NULL_ARRAY), None)),
    *_cases("ARRAY_DISTINCT", ((_ints(2, 1, None, 2, None),), [2, 1, None])),
    *_cases("ARRAY_REVERSE", ((HOLED,), [1, None, 3])),
    *_cases("ARRAY_MAX", ((HOLED,), 3), ((_ints(),), None), ((_texts("b", "a"),), "b")),
    *_cases("ARRAY_MIN", ((HOLED,), 1), ((NULL_ARRAY,), None)),
    *_cases("ARRAY_JOIN", ((_texts("a", None, "b"), ","), "a,b"), ((_texts("a", None), ",", "?"), "a,?")),
    *_cases("ARRAY_JOIN", ((_texts("a"), None), None), ((_texts("a", None), ",", None), None)),
    *_cases("ARRAY_SORT", ((HOLED,), [None, 1, 3]), ((HOLED, False), [3, 1, None])),
    *_cases("ARRAY_SORT", ((HOLED, True, False), [1, 3, None]), ((HOLED, False, True), [None, 3, 1])),
    *_cases("ARRAY_SORT", ((HOLED, Typed("CAST(NULL AS BOOLEAN)", t.BOOLEAN)), None)),
    *(
        Case("ARRAY_SLICE", (THREE, *bounds), expected)
        for bounds, expected in [
            ((2, 2), [2]),
            ((-2,), [2, 3]),
            ((0, 0), [1]),
            ((5,), []),
            ((-5, 2), [1, 2]),
            ((1, 100), [1, 2, 3]),
            ((2, -1), [2, 3]),
            ((1, -5), []),
            ((-1, 0), []),
            ((0, -1), [1, 2, 3]),
            ((-5, -4), [1]),
            ((3, 0), []),
            ((1, NULL_INT), None),
        ]
    ),
    *_cases("ARRAY_SLICE", ((_ints(), 0, 2), []), ((_ints(), -2, -1), [])),
]
ACCESS = [
    *_cases("CARDINALITY", ((THREE,), 3), ((_map(a=1),), 1), ((NULL_ARRAY,), None)),
    *_cases("ELEMENT", ((_ints(7),), 7), ((_ints(),), None), ((NULL_ARRAY,), None)),
    *_cases("ITEM", ((THREE, 1), 1), ((THREE, 4), None), ((THREE, NULL_INT), None)),
    *_cases(
        "ITEM",
        ((THREE, Typed("CAST(0 AS INT)", t.INT)), None),
        ((_map(a=1), "a"), 1),
        ((_map(a=1), "z"), None),
    ),
    *_cases("ITEM", ((_map(a=1), None), None)),
    *_cases("MAP_KEYS", ((_map(a=1, b=2),), ["a", "b"])),
    *_cases("MAP_VALUES", ((_map(a=1, b=2),), [1, 2])),
    *_cases("MAP_ENTRIES", ((_map(a=1, b=2),), [("a", 1), ("b", 2)])),
    *_cases(
        "MAP_FROM_ARRAYS",
        ((_texts("x", None), _ints(1, None)), [(None, None), ("x", 1)]),
        ((NULL_ARRAY, THREE), None),
    ),
    *_cases("MAP_UNION", ((_map(a=1, b=2), _map(b=9)), [("a", 1), ("b", 9)]), ((_map(a=1),), [("a", 1)])),
]


@pytest.mark.parametrize("literal", [True, False], ids=["literals", "columns"])
@pytest.mark.parametrize("cases", [ARRAYS, ACCESS])
def test_values(spark: SparkSession, cases: list[Case], literal: bool) -> None:
    check(spark, cases, literal=literal)


def test_run_time_errors(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"Array has more than one element\."):
        check(spark, _cases("ELEMENT", ((THREE,), None)))
    with pytest.raises(
        PySparkException, match="keys array 3 is not equal to the length of the values array 1"
    ):
        check(spark, _cases("MAP_FROM_ARRAYS", ((THREE, _ints(1)), None)))


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("ARRAY_APPEND", (_ints(1), NULL_INT), "ARRAY<INT>"),
        ("ARRAY_APPEND", (_ints(1), 2), "ARRAY<INT NOT NULL> NOT NULL"),
        ("ARRAY_CONTAINS", (NULL_ARRAY, 1), "BOOLEAN"),
        ("ARRAY_POSITION", (THREE, 1), "INT NOT NULL"),
        ("ARRAY_MAX", (THREE,), "INT"),
        ("ITEM", (THREE, 1), "INT"),
        ("MAP_ENTRIES", (_map(a=1),), "ARRAY<ROW<`key` STRING, `value` INT NOT NULL>> NOT NULL"),
        ("MAP_FROM_ARRAYS", (THREE, NULL_ARRAY), "MAP<INT NOT NULL, INT>"),
    ],
)
def test_result_types(name: str, args: tuple[object, ...], result: str) -> None:
    assert str(resolve(name, args).result) == result


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("ARRAY_APPEND", (THREE, 2.5), "Invalid input arguments"),
        ("ARRAY_CONTAINS", (THREE, "x"), "Invalid input arguments"),
        ("ARRAY_UNION", (THREE, _texts("a")), "Could not find a common type for arguments: [ARRAY"),
        ("ARRAY_JOIN", (THREE, ","), "Invalid input arguments"),
        ("ITEM", (THREE, 0), "Array element access needs an index starting at 1 but was 0."),
        ("ITEM", (_map(a=1), 1), "ITEM(<(VARCHAR(2147483647), INTEGER) MAP>"),
        ("CARDINALITY", ("a",), "'CARDINALITY(<MULTISET>)'"),
        ("MAP_KEYS", (1,), "Invalid input arguments"),
    ],
)  # fmt: skip
def test_refusals(name: str, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(SignatureError) as error:
        resolve(name, args)
    assert message in str(error.value)
