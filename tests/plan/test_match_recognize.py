"""MATCH_RECOGNIZE as it is bound: patterns, values of variables, and what is refused with a reason."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.plan.environment import FakeEnvironment
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.operators.match.skip import SkipTo
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.binder.relations.pattern_text import variables
from tidemill.plan.expressions import InputRef
from tidemill.plan.patterns import EVERY, AfterMatch, PatternAggregate, PatternColumn
from tidemill.runtime.compile.match import match_parts


def bind(
    *,
    measures: str = "A.v AS v",
    order: str = "ts",
    tail: str = "",
    pattern: str = "A B",
    within: str = "",
    define: str = "B AS B.v > A.v",
    mode: str = "batch",
) -> n.MatchRecognize:
    environment = FakeEnvironment(options={"execution.runtime-mode": mode})
    environment.add_table("t", k="STRING", v="INT NOT NULL", ts="TIMESTAMP(3)")
    node = environment.bind(
        f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY {order} MEASURES {measures} {tail}"
        f" PATTERN ({pattern}) {within} DEFINE {define})"
    )
    while not isinstance(node, n.MatchRecognize):
        (node,) = node.inputs
    return node


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", [("A", 1, 1, True)]),
        ("A B* C+ D? E", [("A", 1, 1, True), ("B", 0, None, True), ("C", 1, None, True), ("D", 0, 1, True),
                          ("E", 1, 1, True)]),
        ("A{2} B{2,}? C{,3} D{1,4}? e", [("A", 2, 2, True), ("B", 2, None, False), ("C", 0, 3, True),
                                        ("D", 1, 4, False), ("e", 1, 1, True)]),
        ("(A (B C*?)) `D x`", [("A", 1, 1, True), ("B", 1, 1, True), ("C", 0, None, False),
                               ("D x", 1, 1, True)]),
    ],
)  # fmt: skip
def test_patterns(text: str, expected: list[tuple[str, int, int | None, bool]]) -> None:
    assert [(v.name, v.least, v.most, v.greedy) for v in variables(text, None)] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A | B", "Alternation"),
        ("A (B | C)", "Alternation"),
        ("(A B)+ C", "group of pattern variables"),
        ("PERMUTE(A, B)", "PERMUTE"),
        ("A {- B -} C", "Exclusion"),
        ("^ A", "anchor"),
        ("A B $", "anchor"),
        ("A B?? C", "Reluctant optional"),
        ("A B+", "Greedy quantifiers are not allowed as the last element"),
        ("A B{2,3}", "Greedy quantifiers are not allowed as the last element"),
        ("A* B*?", "empty matches"),
        ("A B A", "Duplicate pattern name: A"),
        ("A{3,2} B", "not a number of rows"),
        ("A{0} B", "not a number of rows"),
        ("A )", "unexpected"),
        ("(A B", "ends too early"),
        ("* A", "unexpected"),
    ],
)
def test_patterns_refused(text: str, message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        variables(text, None)


def test_a_column_is_a_value_of_its_variables_row() -> None:
    node = bind(measures="A.v AS a, FIRST(B.v, 2) AS f, LAST(v, 1) AS l, SUM(B.v) AS s, COUNT(*) AS c")
    a, f, last, s, c = node.measures
    assert isinstance(a, PatternColumn)
    assert (a.variable, a.last, a.offset, a.plain) == (0, True, 0, True)
    assert isinstance(f, PatternColumn)
    assert (f.variable, f.last, f.offset) == (1, False, 2)
    assert isinstance(last, PatternColumn)
    assert (last.variable, last.offset) == (EVERY, 1)
    assert isinstance(s, PatternAggregate)
    assert (s.variable, s.function) == (1, "SUM")
    assert isinstance(c, PatternAggregate)
    assert (c.variable, c.args) == (EVERY, ())
    assert [str(x.type) for x in node.fields] == [
        "STRING", "INT NOT NULL", "INT", "INT", "INT", "BIGINT NOT NULL",
    ]  # fmt: skip


def test_a_variable_that_may_have_no_rows_may_be_null() -> None:
    node = bind(measures="A.v AS a, B.v AS b", pattern="A B? C", define="B AS TRUE")
    assert [str(m.type) for m in node.measures] == ["INT NOT NULL", "INT"]


def test_every_match_has_a_time() -> None:
    node = bind(measures="MATCH_ROWTIME() AS t, LAST(A.ts) AS a")
    assert [str(m.type) for m in node.measures] == ["TIMESTAMP(3) NOT NULL", "TIMESTAMP(3)"]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("", AfterMatch(to=SkipTo.NEXT_ROW)),
        ("AFTER MATCH SKIP TO NEXT ROW", AfterMatch(to=SkipTo.NEXT_ROW)),
        ("AFTER MATCH SKIP PAST LAST ROW", AfterMatch(to=SkipTo.PAST_LAST_ROW)),
        ("ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST B", AfterMatch(to=SkipTo.FIRST, variable=1)),
        ("AFTER MATCH SKIP TO LAST A", AfterMatch(to=SkipTo.LAST)),
        ("AFTER MATCH SKIP TO B", AfterMatch(to=SkipTo.LAST, variable=1)),
    ],
)
def test_after_match(tail: str, expected: AfterMatch) -> None:
    assert bind(tail=tail).pattern.after == expected


def test_within() -> None:
    assert bind(within="WITHIN INTERVAL '2' MINUTE").pattern.within == 120_000


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"measures": "PREV(A.v) AS p"}, "PREV in MATCH_RECOGNIZE"),
        ({"measures": "COUNT(DISTINCT A.v) AS p"}, "DISTINCT, FILTER"),
        ({"define": "B AS B.v IN (SELECT v FROM t)"}, "sub-query"),
        ({"tail": "ALL ROWS PER MATCH"}, "All rows per match"),
    ],
)
def test_not_supported(parts: dict[str, str], message: str) -> None:
    with pytest.raises(NotSupportedError, match=message):
        bind(**parts)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"measures": "SUM(A.v * B.v) AS p"}, "rows of one pattern variable"),
        ({"measures": "LAST(A.v + B.v) AS p"}, "rows of one pattern variable"),
        ({"measures": "LAST(FIRST(A.v)) AS p"}, "cannot be nested"),
        ({"measures": "SUM(LAST(A.v)) AS p"}, "cannot be nested"),
        ({"measures": "LAST(A.v, A.v) AS p"}, "constant number of rows"),
        ({"measures": "X.v AS p"}, "Table 'X' not found"),
        ({"define": "X AS X.v > 1"}, "X"),
        ({"define": "B AS B.v"}, "DEFINE clause must be a condition"),
        ({"tail": "AFTER MATCH SKIP TO FIRST X"}, "Unknown pattern 'X'"),
        ({"within": "WITHIN INTERVAL '1' MONTH"}, "millisecond resolution"),
        ({"order": "v"}, "rowtime or proctime"),
        ({"order": "ts", "mode": "streaming"}, "rowtime or proctime"),
        ({"order": "ts DESC"}, "must be ascending on time"),
    ],
)
def test_not_valid(parts: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        bind(**parts)


@pytest.mark.parametrize(
    ("define", "made"),
    [
        ("B AS B.v > 1 AND B.v < LAST(B.v, 1) OR LAST(B.v, 1) IS NULL AND B.k <> 'x'", 0),
        ("A AS A.v > 8e0, B AS UPPER(B.k) = 'A' AND B.v > A.v", 1),
    ],
)
def test_what_kernels_know_costs_no_projection(define: str, made: int) -> None:
    """Columns that Spark has to compute for the conditions; those that rows have go as they are."""
    node = bind(measures="LAST(B.v) AS v", define=define)
    parts = {f.name: getattr(node, f.name) for f in fields(node) if f.name != "input"}
    rows = p.DataFrameScan(fields=node.input.fields, key="")
    carried = match_parts(p.Match(input=rows, **parts), rows.fields).carried
    assert sum(not isinstance(expr, InputRef) for _, expr in carried) == made
