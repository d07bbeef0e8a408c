from __future__ import annotations

import pytest
from sqlglot import exp

from tests.sql.shape import expression
from tidemill.errors import NotSupportedError, Position, SqlSyntaxError
from tidemill.sql.parser import parse_expression
from tidemill.sql.positions import position_of


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a OR b AND NOT c", "(Or a (And b (Not c)))"),
        ("NOT a = b", "(Not (EQ a b))"),
        ("NOT a IS NULL", "(Not (Is a Null))"),
        ("a = b IS NOT TRUE", "(Not (Is (EQ a b) (Boolean True)))"),
        ("a IS NULL = b", "(EQ (Is a Null) b)"),
        ("NOT a IS NULL IN (b)", "(Not (In (Is a Null) b))"),
        ("a = b = c", "(EQ (EQ a b) c)"),
        ("a = b LIKE c", "(EQ a (Like b c))"),
        ("a + 1 BETWEEN b - 1 AND c * 2 AND d", "(And (Between (Add a 1) (Sub b 1) (Mul c 2)) d)"),
        ("a NOT BETWEEN SYMMETRIC 1 AND 2", "(Not (Between a 1 2 True))"),
        ("a - b - c", "(Sub (Sub a b) c)"),
        ("a + b || c * d", "(Add a (Mul (DPipe b c) d))"),
        ("-a * b", "(Mul (Neg a) b)"),
        ("a - -1", "(Sub a (Neg 1))"),
        ("+a", "a"),
        ("a % 2 / 3", "(Div (Mod a 2) 3)"),
        ("a IS DISTINCT FROM b", "(NullSafeNEQ a b)"),
        ("a IS NOT DISTINCT FROM b + 1", "(NullSafeEQ a (Add b 1))"),
        ("a IS UNKNOWN", "(IsUnknown a)"),
        ("a IS NOT JSON OBJECT", "(Not (IsJson a OBJECT))"),
        ("a IS JSON", "(IsJson a VALUE)"),
        ("a IN (1, 2)", "(In a 1 2)"),
        ("a NOT LIKE 'x' ESCAPE '!'", "(Not (Escape (Like a 'x') '!'))"),
        ("a SIMILAR TO b || c", "(SimilarTo a (DPipe b c))"),
        ("a IN (1) = TRUE", "(EQ (In a 1) (Boolean True))"),
        ("(a, b) OVERLAPS (c, d)", "(OVERLAPS (Tuple a b) (Tuple c d))"),
        ("(a)", "(Paren a)"),
        ("a.b.c.d.e", "(Dot a.b.c.d e)"),
        ("(a).b[1].c", "(Dot (Bracket (Dot (Paren a) b) 1) c)"),
        ("f(a)[1]['k']", "(Bracket (Bracket (f a) 1) 'k')"),
        ("a = ANY (SELECT b)", "(EQ a (Any (Select b)))"),
        ("a <> ALL (SELECT b)", "(NEQ a (All (Select b)))"),
        ("a IN (SELECT b)", "(In a (Select b))"),
        ("((SELECT a) + 1)", "(Paren (Add (Subquery (Select a)) 1))"),
        ("((SELECT a))", "(Subquery (Select a))"),
        ("EXISTS (SELECT a)", "(Exists (Select a))"),
    ],
)
def test_precedence(text: str, tree: str) -> None:
    assert expression(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1e0", "1e0"),
        (".5", ".5"),
        ("'it''s'", '"it\'s"'),
        ("'a'\n'b'", "'ab'"),
        ("u&'\\0041'", "'A'"),
        ("U&'!0041' UESCAPE '!'", "'A'"),
        ("U&'a\\\\b\\d83d\\de00\\d83d'", "'a\\\\b\U0001f600?'"),
        ("U&'\\zz' UESCAPE '!'", "'\\\\zz'"),
        ("_UTF16'x'", "'x'"),
        ("X'0aFf'", "(BinaryLiteral 0aFf)"),
        ("DATE '2020-01-02'", "(DateTimeLiteral 2020-01-02 DATE)"),
        ("TIME '10:20:30.5'", "(DateTimeLiteral 10:20:30.5 TIME)"),
        ("TIMESTAMP '2020-01-02 03:04:05.678'", "(DateTimeLiteral 2020-01-02 03:04:05.678 TIMESTAMP)"),
        (
            "TIMESTAMP WITH LOCAL TIME ZONE '2020-01-02 00:00:00'",
            "(DateTimeLiteral 2020-01-02 00:00:00 TIMESTAMP_LTZ)",
        ),
        ("INTERVAL '1 2' DAY TO HOUR", "(IntervalLiteral 1 2 DAY HOUR)"),
        ("INTERVAL -'3' months", "(IntervalLiteral 3 True MONTH)"),
        ("INTERVAL '100' DAY(3)", "(IntervalLiteral 100 DAY 3)"),
        ("INTERVAL '1.5' SECOND(2, 1)", "(IntervalLiteral 1.5 SECOND 2 1)"),
        ("NULL", "Null"),
    ],
)
def test_literals(text: str, tree: str) -> None:
    assert expression(text) == tree


@pytest.mark.parametrize("text", ["DATE '2020-02-30'", "TIMESTAMP '2020-01-01T00:00:00'", "TIME '10:20'"])
def test_a_bad_date_or_time_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="not in format"):
        parse_expression(text)


def test_a_unicode_escape_has_four_digits() -> None:
    with pytest.raises(SqlSyntaxError, match="starting at character 1 is not exactly four hex digits"):
        parse_expression("U&'a\\00'")


@pytest.mark.parametrize("text", ["a MEMBER OF b", "a IS A SET", "a CONTAINS b"])
def test_operators_that_are_not_there_are_named(text: str) -> None:
    with pytest.raises(NotSupportedError):
        parse_expression(text)


def test_positions_are_relative_to_the_script() -> None:
    tree = parse_expression("a +\n  missing", Position(5, 10))
    assert position_of(tree) == Position(5, 12)
    assert position_of(tree.expression) == Position(6, 3)
    assert position_of(tree.this) == Position(5, 10)
    assert position_of(tree.copy().expression) == Position(6, 3)


def test_long_chains_are_no_depth() -> None:
    tree = parse_expression(" + ".join(["a"] * 5000))
    assert expression("a + a + a") == "(Add (Add a a) a)"
    assert sum(1 for _ in tree.find_all(exp.Column)) == 5000


def test_nesting_may_be_deep() -> None:
    inner = parse_expression("(" * 1000 + "a" + ")" * 1000)
    while isinstance(inner, exp.Paren):
        inner = inner.this
    assert inner.name == "a"
