from __future__ import annotations

import pytest

from tidemill.errors import NotSupportedError, Position, SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_script, parse_statement


def test_create_table_in_full() -> None:
    table = parse_statement(
        "CREATE TEMPORARY TABLE IF NOT EXISTS c.d.t (\n"
        "  a INT NOT NULL COMMENT 'first',\n"
        "  b AS a + 1 COMMENT 'second',\n"
        "  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,\n"
        "  k BIGINT METADATA,\n"
        "  CONSTRAINT pk PRIMARY KEY (a, `k`) NOT ENFORCED,\n"
        "  WATERMARK FOR ts AS ts -  INTERVAL '5' SECOND\n"
        ") COMMENT 'all' PARTITIONED BY (a, k) WITH ('x' = 'y', 'it''s' = '')"
    )
    assert isinstance(table, s.CreateTable)
    assert (table.path, table.temporary, table.if_not_exists) == (("c", "d", "t"), True, True)
    a, b, ts, k = table.columns
    assert isinstance(a, s.PhysicalColumn)
    assert (str(a.type), a.comment, a.position) == ("INT NOT NULL", "first", Position(2, 3))
    assert isinstance(b, s.ComputedColumn)
    assert (b.expression, b.comment) == ("a + 1", "second")
    assert isinstance(ts, s.MetadataColumn)
    assert (ts.key, ts.virtual) == ("timestamp", True)
    assert isinstance(k, s.MetadataColumn)
    assert (k.key, k.virtual) == ("", False)
    (key,) = table.constraints
    assert (key.name, key.columns, key.enforced) == ("pk", ("a", "k"), False)
    (watermark,) = table.watermarks
    assert (watermark.column, watermark.expression) == (("ts",), "ts -  INTERVAL '5' SECOND")
    assert (table.comment, table.partitioned_by) == ("all", ("a", "k"))
    assert table.options == (("x", "y"), ("it's", ""))


def test_a_key_at_a_column() -> None:
    table = parse_statement("CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED COMMENT 'x', b INT)")
    assert isinstance(table, s.CreateTable)
    assert [(c.kind, c.columns) for c in table.constraints] == [("PRIMARY KEY", ("a",))]


def test_like_and_as() -> None:
    like = parse_statement("CREATE TABLE t (b INT) LIKE c.s (EXCLUDING ALL OVERWRITING OPTIONS)")
    assert isinstance(like, s.CreateTable)
    assert like.like is not None
    assert like.like.source == ("c", "s")
    assert like.like.options == (("EXCLUDING", "ALL"), ("OVERWRITING", "OPTIONS"))
    copied = parse_statement("CREATE TABLE t (y, x) WITH ('a'='b') AS SELECT 1 AS x,  2 AS y")
    assert isinstance(copied, s.CreateTable)
    assert (copied.column_names, copied.query_text) == (("y", "x"), "SELECT 1 AS x,  2 AS y")


def test_view_keeps_its_text_and_where_it_is() -> None:
    view = parse_statement("CREATE VIEW v (x) COMMENT 'c' AS\n  SELECT  1 -- one\n", Position(7, 3))
    assert isinstance(view, s.CreateView)
    assert (view.query_text, view.query_position) == ("SELECT  1", Position(8, 3))
    assert (view.columns, view.comment) == (("x",), "c")


def test_insert_in_full() -> None:
    insert = parse_statement(
        "INSERT OVERWRITE c.t /*+ OPTIONS('k'='v') */ PARTITION (p = 'x', q) (a, b) "
        "SELECT 1, 2 ON CONFLICT DO DEDUPLICATE"
    )
    assert isinstance(insert, s.Insert)
    assert (insert.target, insert.columns, insert.overwrite) == (("c", "t"), ("a", "b"), True)
    assert insert.hints == (("k", "v"),)
    assert [(name, value is None) for name, value in insert.partition] == [("p", False), ("q", True)]
    assert insert.conflict == "DEDUPLICATE"


def test_a_parenthesis_behind_the_target_may_be_the_query() -> None:
    insert = parse_statement("INSERT INTO t (SELECT 1)")
    assert isinstance(insert, s.Insert)
    assert insert.columns == ()


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
        "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
    ],
)
def test_statement_set(text: str) -> None:
    block = parse_statement(text)
    assert isinstance(block, s.StatementSet)
    assert [insert.target for insert in block.inserts] == [("a",), ("b",)]
    assert block.inserts[1].text == "INSERT INTO b SELECT 2"


@pytest.mark.parametrize(
    ("text", "target", "details"),
    [
        ("EXPLAIN SELECT 1", s.Query, ()),
        ("EXPLAIN PLAN FOR INSERT INTO t SELECT 1", s.Insert, ()),
        ("EXPLAIN EXECUTE INSERT INTO t SELECT 1", s.Insert, ()),
        ("EXPLAIN EXECUTE VALUES (1)", s.Query, ()),
        ("EXPLAIN EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; END", s.StatementSet, ()),
        ("EXPLAIN CHANGELOG_MODE, PLAN_ADVICE SELECT 1", s.Query, ("CHANGELOG_MODE", "PLAN_ADVICE")),
        ("EXPLAIN ESTIMATED_COST STATEMENT SET BEGIN INSERT INTO t SELECT 1; END", s.StatementSet,
         ("ESTIMATED_COST",)),
    ],
)  # fmt: skip
def test_explain(text: str, target: type[s.Statement], details: tuple[str, ...]) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, s.Explain)
    assert (type(statement.target), statement.details) == (target, details)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("RENAME TO c.u", s.RenameTable(to=("c", "u"))),
        ("RENAME r.a TO b", s.RenameColumn(column=("r", "a"), to="b")),
        ("SET ('a'='b')", s.SetOptions(options=(("a", "b"),))),
        ("RESET ('a', 'b')", s.ResetOptions(keys=("a", "b"))),
        ("DROP a", s.DropColumns(columns=(("a",),))),
        ("DROP (a, b)", s.DropColumns(columns=(("a",), ("b",)))),
        ("DROP PRIMARY KEY", s.DropConstraint()),
        ("DROP CONSTRAINT pk", s.DropConstraint(name="pk")),
        ("DROP WATERMARK", s.DropWatermark()),
    ],
)
def test_alter_table(text: str, change: s.TableChange) -> None:
    statement = parse_statement(f"ALTER TABLE IF EXISTS t {text}")
    assert isinstance(statement, s.AlterTable)
    assert (statement.path, statement.if_exists, statement.change) == (("t",), True, change)


def test_alter_table_places_columns() -> None:
    statement = parse_statement(
        "ALTER TABLE t ADD (b INT AFTER r.a, c AS b FIRST, d STRING, PRIMARY KEY (b) NOT ENFORCED)"
    )
    assert isinstance(statement, s.AlterTable)
    change = statement.change
    assert isinstance(change, s.AddSchema)
    assert [(p.column.name, p.placement, p.after) for p in change.columns] == [
        ("b", s.Placement.AFTER, ("r", "a")),
        ("c", s.Placement.FIRST, ()),
        ("d", s.Placement.LAST, ()),
    ]
    assert [c.columns for c in change.constraints] == [("b",)]


@pytest.mark.parametrize(
    ("text", "kind", "path", "pattern", "negated", "insensitive"),
    [
        ("SHOW TABLES", "TABLES", (), None, False, False),
        ("SHOW TABLES IN c.d NOT LIKE 'a%'", "TABLES", ("c", "d"), "a%", True, False),
        ("SHOW FUNCTIONS ILIKE 'a'", "FUNCTIONS", (), "a", False, True),
        ("SHOW USER FUNCTIONS", "USER FUNCTIONS", (), None, False, False),
        ("SHOW CURRENT DATABASE", "CURRENT DATABASE", (), None, False, False),
        ("SHOW CREATE VIEW a.v", "CREATE VIEW", ("a", "v"), None, False, False),
        ("SHOW COLUMNS FROM t LIKE 'a'", "COLUMNS", ("t",), "a", False, False),
        ("SHOW FULL MODULES", "FULL MODULES", (), None, False, False),
    ],
)
def test_show(
    text: str, kind: str, path: tuple[str, ...], pattern: str | None, negated: bool, insensitive: bool
) -> None:
    show = parse_statement(text)
    assert isinstance(show, s.Show)
    found = (show.kind.value, show.path, show.pattern, show.negated, show.case_insensitive)
    assert found == (kind, path, pattern, negated, insensitive)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("SET 'a.b' = 'c d'", "a.b", "c d"),
        ("SET a.b-c.d = 10 min;", "a.b-c.d", "10 min"),
        ("SET", "", ""),
        ("SET 'a' = ''", "a", ""),
    ],
)
def test_set(text: str, key: str, value: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, s.SetOption)
    assert (statement.key, statement.value) == (key, value)


@pytest.mark.parametrize(
    ("text", "kind", "flags"),
    [
        ("DROP TABLE a.t", s.DropTable, (False, False, False)),
        ("DROP TEMPORARY VIEW IF EXISTS v", s.DropView, (True, True, False)),
        ("DROP DATABASE IF EXISTS d CASCADE", s.DropDatabase, (True, False, True)),
        ("DROP DATABASE d RESTRICT", s.DropDatabase, (False, False, False)),
        ("DROP CATALOG c", s.DropCatalog, (False, False, False)),
    ],
)
def test_drop(text: str, kind: type[s.Drop], flags: tuple[bool, bool, bool]) -> None:
    drop = parse_statement(text)
    assert type(drop) is kind
    assert isinstance(drop, s.Drop)
    assert (drop.if_exists, drop.temporary, drop.cascade) == flags


def test_functions_use_and_describe() -> None:
    script = (
        "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'm.f' LANGUAGE PYTHON; USE CATALOG c; USE c.d;"
        "DESC EXTENDED c.d.t; CREATE DATABASE d COMMENT 'x' WITH ('a'='b'); ALTER VIEW v RENAME TO w"
    )
    function, use, database, describe, create, alter = parse_script(script)
    assert isinstance(function, s.CreateFunction)
    assert (function.identifier, function.language, function.system) == ("m.f", "PYTHON", True)
    assert isinstance(use, s.UseCatalog)
    assert isinstance(database, s.UseDatabase)
    assert (use.name, database.path) == ("c", ("c", "d"))
    assert isinstance(describe, s.Describe)
    assert (describe.path, describe.extended) == (("c", "d", "t"), True)
    assert isinstance(create, s.CreateDatabase)
    assert (create.comment, create.options) == ("x", (("a", "b"),))
    assert isinstance(alter, s.AlterView)
    assert alter.rename == ("w",)


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("CALL p(1)", "CALL"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", "ANALYZE TABLE"),
    ],
)
def test_statements_that_are_only_named(text: str, feature: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, s.Unsupported)
    assert statement.feature == feature


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("CREATE CONNECTION c WITH ()", "CREATE CONNECTION"),
        ("ALTER MATERIALIZED TABLE t RESUME", "ALTER MATERIALIZED TABLE ... RESUME"),
        ("SHOW CONNECTIONS", "SHOW CONNECTIONS"),
    ],
)
def test_clauses_that_are_refused_by_name(text: str, feature: str) -> None:
    with pytest.raises(NotSupportedError, match=feature):
        parse_statement(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "NOT ENFORCED"),
        ("CREATE TABLE t (a INT UNIQUE)", "UNIQUE constraint is not supported yet"),
        ("CREATE TABLE t (a INT) WITH (a='b')", 'Encountered "a" at line 1, column 30.'),
        ("INSERT INTO TABLE t SELECT 1", "Incorrect syntax near the keyword 'TABLE' at line 1, column 13."),
        ("EXECUTE STATEMENT SET BEGIN END", 'Encountered "END" at line 1, column 29.'),
        ("SELEC 1", 'Encountered "SELEC" at line 1, column 1.'),
    ],
)
def test_syntax_errors(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELEC 1", "Did you mean SELECT instead of SELEC?"),
        ("SELECT a FORM t", "Did you mean FROM instead of FORM?"),
        ("SELECT a FROM t GRUOP BY a", "Did you mean GROUP instead of GRUOP?"),
        ("SHOW TABELS", "Did you mean TABLES instead of TABELS?"),
        ("SELECT a FROM t x y", ""),
    ],
)
def test_misspelt_keywords_are_hinted_at(text: str, hint: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_statement(text)
    assert caught.value.hint == hint
