"""CREATE TABLE, LIKE, ALTER TABLE, DESCRIBE and SHOW CREATE TABLE; expectations are Flink's answers."""

from __future__ import annotations

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.session.environment import TableEnvironment
from tidemill.session.snapshot import restored, taken

BASE = (
    "CREATE TABLE base (id INT, c AS id+1, ts TIMESTAMP(3), m STRING METADATA, WATERMARK FOR ts AS ts, "
    "PRIMARY KEY (id) NOT ENFORCED) COMMENT 'bc' PARTITIONED BY (id) "
    "WITH ('connector'='filesystem','path'='/tmp/x','format'='json')"
)

FILES = "WITH ('connector'='filesystem','path'='/tmp/x','format'='json')"


@pytest.fixture
def session() -> TableEnvironment:
    return new_session()


@pytest.fixture
def based() -> TableEnvironment:
    session = new_session()
    session.execute_sql(BASE)
    return session


def created(session: TableEnvironment, name: str) -> str:
    return str(ask(session, f"SHOW CREATE TABLE {name}")[0][0])


def test_show_create_table_gives_the_whole_table_back(session: TableEnvironment) -> None:
    session.execute_sql(
        "CREATE TABLE t (id INT COMMENT 'the id', g STRING NOT NULL, v AS id + 1, ts TIMESTAMP(3), "
        "m STRING METADATA FROM 'file.path' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, "
        "PRIMARY KEY (id) NOT ENFORCED) COMMENT 'a table' PARTITIONED BY (g) "
        "WITH ('connector'='filesystem','path'='/tmp/x','format'='json')"
    )
    text = created(session, "t")
    assert text == (
        "CREATE TABLE `default_catalog`.`default_database`.`t` (\n"
        "  `id` INT NOT NULL COMMENT 'the id',\n"
        "  `g` VARCHAR(2147483647) NOT NULL,\n"
        "  `v` AS `id` + 1,\n"
        "  `ts` TIMESTAMP(3),\n"
        "  `m` VARCHAR(2147483647) METADATA FROM 'file.path' VIRTUAL,\n"
        "  WATERMARK FOR `ts` AS `ts` - INTERVAL '5' SECOND,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n"
        ")\n"
        "COMMENT 'a table'\n"
        "PARTITIONED BY (`g`)\n"
        "WITH (\n"
        "  'connector' = 'filesystem',\n"
        "  'format' = 'json',\n"
        "  'path' = '/tmp/x'\n"
        ")\n"
    )
    session.execute_sql("DROP TABLE t")
    session.execute_sql(text)
    assert created(session, "t") == text


def test_describe_shows_keys_extras_watermark_and_comments(session: TableEnvironment) -> None:
    session.execute_sql(
        "CREATE TABLE t (id INT COMMENT 'the id', v AS id + 1, ts TIMESTAMP(3), m STRING METADATA FROM 'k' "
        "VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('connector'='blackhole')"
    )
    assert ask(session, "DESCRIBE t") == [
        ("id", "INT", False, "PRI(id)", None, None, "the id"),
        ("v", "INT", False, None, "AS `id` + 1", None, None),
        ("ts", "TIMESTAMP(3) *ROWTIME*", True, None, None, "`ts` - INTERVAL '5' SECOND", None),
        ("m", "STRING", True, None, "METADATA FROM 'k' VIRTUAL", None, None),
    ]
    assert [r[0] for r in ask(session, "SHOW COLUMNS FROM t NOT LIKE '_'")] == ["id", "ts"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("id INT, id INT", "A regular Column named 'id' already exists in the table"),
        ("id INT, PRIMARY KEY (id)", "doesn't support ENFORCED mode"),
        ("id INT, PRIMARY KEY (idd) NOT ENFORCED", "Primary key column 'idd' is not defined in the schema"),
        ("id INT, c AS id, PRIMARY KEY (c) NOT ENFORCED", "must be declared on physical columns"),
        ("id INT, PRIMARY KEY (id, id) NOT ENFORCED", r"must not contain duplicate columns. Found: \[id\]"),
        ("id INT PRIMARY KEY NOT ENFORCED, b INT, PRIMARY KEY (b) NOT ENFORCED", "Duplicate primary key"),
        ("id INT, UNIQUE (id) NOT ENFORCED", "UNIQUE constraint is not supported"),
        (
            "id INT, WATERMARK FOR ts AS ts",
            r"not defined in the table schema.*\nAvailable fields: \['id'\]",
        ),
        ("ts STRING, WATERMARK FOR ts AS ts", "but the time field type is STRING"),
        ("ts TIMESTAMP(6), WATERMARK FOR ts AS ts", r"but the time field type is TIMESTAMP\(6\)"),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS 'x'", r"watermark expression type is CHAR\(1\) NOT NULL"),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS nope", "nope"),
        ("id INT, c AS idd + 1", "idd"),
        ("id INT, c AS d + 1, d AS id + 1", "'d'"),
    ],
)
def test_schemas_that_flink_refuses(session: TableEnvironment, body: str, message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        session.execute_sql(f"CREATE TABLE t ({body}) WITH ('connector'='blackhole')")
    assert session.list_tables() == []


def test_partition_columns_must_exist(session: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match=r"'p' not defined in .* Available columns: \['id'\]"):
        session.execute_sql("CREATE TABLE t (id INT) PARTITIONED BY (p) WITH ('connector'='blackhole')")


def test_errors_in_expressions_stand_at_the_expression(session: TableEnvironment) -> None:
    with pytest.raises(ValidationError) as caught:
        session.execute_sql("CREATE TABLE t (id INT,\n  c AS idd + 1) WITH ('connector'='blackhole')")
    assert str(caught.value.position) == "line 2, column 8"


def test_if_not_exists_leaves_the_table_alone(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TABLE t (id INT) WITH ('connector'='blackhole')")
    session.execute_sql("CREATE TABLE IF NOT EXISTS t (other STRING, x AS nope) WITH ('connector'='print')")
    assert ask(session, "DESCRIBE t")[0][0] == "id"


def test_like_takes_all_and_options_overwrite(based: TableEnvironment) -> None:
    based.execute_sql("CREATE TABLE t (extra INT) WITH ('format'='csv') LIKE base")
    text = created(based, "t")
    assert (
        "`id` INT NOT NULL,\n  `c` AS `id` + 1,\n  `ts` TIMESTAMP(3),\n  `m` VARCHAR(2147483647) METADATA,\n"
        in text
    )
    assert "`extra` INT,\n  WATERMARK FOR `ts` AS `ts`,\n  CONSTRAINT `PK_id`" in text
    assert "'format' = 'csv'" in text
    assert "'path' = '/tmp/x'" in text
    assert "COMMENT" not in text


def test_like_excluding_all_keeps_columns_and_partitions(based: TableEnvironment) -> None:
    based.execute_sql("CREATE TABLE t (q INT) WITH ('connector'='blackhole') LIKE base (EXCLUDING ALL)")
    assert created(based, "t") == (
        "CREATE TABLE `default_catalog`.`default_database`.`t` (\n  `id` INT NOT NULL,\n"
        "  `ts` TIMESTAMP(3),\n  `q` INT\n)\nPARTITIONED BY (`id`)\nWITH (\n  'connector' = 'blackhole'\n)\n"
    )


def test_like_overwriting_replaces_in_place(based: TableEnvironment) -> None:
    based.execute_sql(
        "CREATE TABLE t (c AS id+5, WATERMARK FOR ts AS ts - INTERVAL '9' SECOND) "
        "LIKE base (OVERWRITING GENERATED OVERWRITING WATERMARKS)"
    )
    text = created(based, "t")
    assert "`id` INT NOT NULL,\n  `c` AS `id` + 5,\n" in text
    assert "WATERMARK FOR `ts` AS `ts` - INTERVAL '9' SECOND" in text


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (id BIGINT) LIKE base", "A column named 'id' already exists in the base table"),
        ("CREATE TABLE t (c AS id+5) LIKE base", "specify EXCLUDING GENERATED or OVERWRITING GENERATED"),
        ("CREATE TABLE t (PRIMARY KEY (ts) NOT ENFORCED) LIKE base", "already has a primary key"),
        (
            "CREATE TABLE t (PRIMARY KEY (ts) NOT ENFORCED) LIKE base (EXCLUDING CONSTRAINTS)",
            "Invalid primary key 'PK_ts'. Column 'ts' is nullable",
        ),
        (
            "CREATE TABLE t (WATERMARK FOR ts AS ts) LIKE base",
            "or OVERWRITING WATERMARKS",
        ),
        ("CREATE TABLE t (x INT) PARTITIONED BY (x) LIKE base", "already has partitions defined"),
        (
            "CREATE TABLE t WITH ('format'='csv') LIKE base (INCLUDING OPTIONS)",
            "OVERWRITING OPTIONS",
        ),
        (
            "CREATE TABLE t (x INT) LIKE base (OVERWRITING ALL)",
            "Illegal merging strategy",
        ),
        ("CREATE TABLE t LIKE bases", "of the LIKE clause not found in the catalog, at line 1, column 16"),
    ],
)
def test_like_conflicts(based: TableEnvironment, statement: str, message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        based.execute_sql(statement)


def test_alter_table_columns(session: TableEnvironment) -> None:
    for statement in (
        "CREATE TABLE u (id INT, g STRING) WITH ('connector'='filesystem','path'='/tmp/x','format'='json')",
        "ALTER TABLE u ADD (x INT COMMENT 'xx', y STRING AFTER id, z AS id*2)",
        "ALTER TABLE u ADD PRIMARY KEY (id) NOT ENFORCED",
        "ALTER TABLE u MODIFY (x BIGINT FIRST)",
    ):
        session.execute_sql(statement)
    assert ask(session, "DESCRIBE u") == [
        ("x", "BIGINT", True, None, None, None, "xx"),
        ("id", "INT", False, "PRI(id)", None, None, None),
        ("y", "STRING", True, None, None, None, None),
        ("g", "STRING", True, None, None, None, None),
        ("z", "INT", False, None, "AS `id` * 2", None, None),
    ]
    session.execute_sql("ALTER TABLE u DROP (x, y)")
    session.execute_sql("ALTER TABLE u RENAME g TO h")
    assert [r[0] for r in ask(session, "DESCRIBE u")] == ["id", "h", "z"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ADD id INT", "Column `id` already exists in the table"),
        ("ADD PRIMARY KEY (ts) NOT ENFORCED", r"already defined the primary key constraint \[`id`\]"),
        ("MODIFY nope INT", "Column `nope` does not exist in the table"),
        ("DROP id", "The column `id` is referenced by computed column `c`"),
        ("DROP ts", "The column `ts` is referenced by watermark expression"),
        ("DROP nope", "The column `nope` does not exist in the base table"),
        ("RENAME nope TO x", "The column `nope` does not exist in the base table"),
        ("RENAME m TO c", "The column `c` already existed in table schema"),
        ("ADD WATERMARK FOR ts AS ts", "already defined the watermark strategy"),
        ("ADD x INT AFTER nope", "Referenced column `nope` by 'AFTER' does not exist"),
        ("RESET ('connector')", "does not support changing 'connector'"),
    ],
)
def test_alter_table_refusals_change_nothing(based: TableEnvironment, change: str, message: str) -> None:
    before = created(based, "base")
    with pytest.raises(ValidationError, match=message):
        based.execute_sql(f"ALTER TABLE base {change}")
    assert created(based, "base") == before


def test_alter_table_key_watermark_and_options(based: TableEnvironment) -> None:
    for change in ("DROP PRIMARY KEY", "DROP WATERMARK", "SET ('format'='csv','k'='v')", "RESET ('k')"):
        based.execute_sql(f"ALTER TABLE base {change}")
    text = created(based, "base")
    assert "PRIMARY KEY" not in text
    assert "WATERMARK" not in text
    assert "'format' = 'csv'" in text
    assert "'k'" not in text
    with pytest.raises(ValidationError, match="does not define any primary key"):
        based.execute_sql("ALTER TABLE base DROP PRIMARY KEY")


def test_alter_table_of_nothing(session: TableEnvironment) -> None:
    with pytest.raises(ValidationError, match=r"`nope` doesn't exist or is a temporary table"):
        session.execute_sql("ALTER TABLE nope RENAME TO u")
    assert ask(session, "ALTER TABLE IF EXISTS nope RENAME TO u") == [("OK",)]


def test_partitions_of_the_catalog(session: TableEnvironment) -> None:
    ask(session, f"CREATE TABLE p (a INT, b STRING, c BIGINT) PARTITIONED BY (b, c) {FILES}")
    assert ask(session, "SHOW PARTITIONS p") == []
    ask(session, "ALTER TABLE p ADD PARTITION (b='x', c=1) WITH ('k'='v') PARTITION (c=-2, b='y/z')")
    assert ask(session, "SHOW PARTITIONS p") == [("b=x/c=1",), ("b=y/z/c=-2",)]
    assert ask(session, "SHOW PARTITIONS p PARTITION (c=-2)") == [("b=y/z/c=-2",)]
    ask(session, "ALTER TABLE p ADD IF NOT EXISTS PARTITION (b='x', c=1) PARTITION (b='w', c=3)")
    kept = restored(taken(session.context)).catalogs.find(session.context.catalogs.qualify(("p",)))
    assert kept == session.context.catalogs.find(session.context.catalogs.qualify(("p",)))
    ask(session, "ALTER TABLE p DROP PARTITION (b='x', c=1), PARTITION (b='y/z', c=-2)")
    ask(session, "ALTER TABLE p DROP IF EXISTS PARTITION (b='x', c=1)")
    assert ask(session, "SHOW PARTITIONS p") == [("b=w/c=3",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE p ADD PARTITION (b='x')", r"{{b=x}} does not match partition keys \[b\, c\] of table"),
        ("ALTER TABLE p ADD PARTITION (b='w', c=3)", "Partition CatalogPartitionSpec{{b=w, c=3}} .* already"),
        (
            "ALTER TABLE p DROP PARTITION (b='v', c=3)",
            "{{b=v, c=3}} of table .*p in .* not exist",
        ),
        ("SHOW PARTITIONS nope", r"Table \(or view\) default_database.nope does not exist in Catalog"),
        ("SHOW PARTITIONS q", "default_database.q in catalog default_catalog is not partitioned"),
    ],
)
def test_partitions_that_are_not_there(session: TableEnvironment, statement: str, message: str) -> None:
    ask(session, f"CREATE TABLE p (a INT, b STRING, c BIGINT) PARTITIONED BY (b, c) {FILES}")
    ask(session, "ALTER TABLE p ADD PARTITION (b='w', c=3)", f"CREATE TABLE q (a INT) {FILES}")
    with pytest.raises(ValidationError, match=message):
        session.execute_sql(statement)
    assert ask(session, "SHOW PARTITIONS p") == [("b=w/c=3",)]


def test_types_are_spelled_out_inside_others(session: TableEnvironment) -> None:
    types = "a TIMESTAMP_LTZ(3) NOT NULL, b ROW<`STRING` STRING, y ARRAY<BYTES> NOT NULL>, c MAP<STRING, INT>"
    ask(session, f"CREATE TABLE t ({types}) WITH ('connector'='print')")
    text = created(session, "t")
    assert "  `a` TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL,\n" in text
    assert "  `b` ROW<`STRING` VARCHAR(2147483647), `y` ARRAY<VARBINARY(2147483647)> NOT NULL>,\n" in text
    assert "  `c` MAP<VARCHAR(2147483647), INT>\n" in text
    ask(session, "ALTER TABLE t RENAME TO u", text)
    assert created(session, "t") == text


def test_nanoseconds_are_warned_of_once_a_table(caplog: pytest.LogCaptureFixture) -> None:
    session = new_session()
    columns = "a TIMESTAMP(9), b ROW<x TIMESTAMP_LTZ(7)>, c TIMESTAMP(6)"
    text = f"CREATE TABLE IF NOT EXISTS n ({columns}) WITH ('connector'='print')"
    with caplog.at_level("WARNING", logger="tidemill"):
        ask(session, text)
        ask(session, text)
        ask(session, "DROP TABLE n", text)
        ask(session, "CREATE TABLE m (c TIMESTAMP(6), d ARRAY<TIMESTAMP(3)>) WITH ('connector'='print')")
    (message,) = caplog.messages
    assert message == (
        "Table `default_catalog`.`default_database`.`n`: of 'a' TIMESTAMP(9), 'b' ROW<`x` TIMESTAMP_LTZ(7)> "
        "microseconds are kept, digits beyond the 6th are cut off"
    )


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        (
            "CREATE TABLE w (ts TIMESTAMP(3), WATERMARK FOR ts AS SOURCE_WATERMARK())",
            "SOURCE_WATERMARK",
        ),
        ("SELECT SOURCE_WATERMARK()", "SOURCE_WATERMARK"),
    ],
)
def test_a_function_that_is_not_there_is_named_where_it_stands(sql: str, name: str) -> None:
    with pytest.raises(NotSupportedError, match=f"function {name} is not supported") as raised:
        ask(new_session(), sql)
    assert raised.value.position is not None


def test_a_distribution_is_kept_shown_and_changed() -> None:
    session = new_session()
    columns = "(a INT, b STRING) DISTRIBUTED BY HASH(a) INTO 4 BUCKETS"
    ask(session, f"CREATE TABLE t {columns} WITH ('connector'='x')")
    ask(session, "CREATE TABLE u (a INT) DISTRIBUTED INTO 2 BUCKETS WITH ('connector'='blackhole')")
    ask(session, "CREATE TABLE v LIKE t", "CREATE TABLE w LIKE t (EXCLUDING DISTRIBUTION)")

    def shown(table: str) -> str:
        text = ask(session, f"SHOW CREATE TABLE {table}")[0][0]
        return next((line for line in text.splitlines() if line.startswith("DISTRIBUTED")), "")

    assert [shown(table) for table in "tuvw"] == [
        "DISTRIBUTED BY HASH(`a`) INTO 4 BUCKETS",
        "DISTRIBUTED INTO 2 BUCKETS",
        "DISTRIBUTED BY HASH(`a`) INTO 4 BUCKETS",
        "",
    ]
    ask(session, "ALTER TABLE t MODIFY DISTRIBUTION BY (b, a)", "ALTER TABLE w ADD DISTRIBUTION BY RANGE(b)")
    assert (shown("t"), shown("w")) == ("DISTRIBUTED BY (`b`, `a`)", "DISTRIBUTED BY RANGE(`b`)")
    again = TableEnvironment(restored(taken(session.context)))
    assert ask(again, "SHOW CREATE TABLE t") == ask(session, "SHOW CREATE TABLE t")
    ask(session, "ALTER TABLE v DROP DISTRIBUTION")
    assert shown("v") == ""
    for statement, said in (
        ("ALTER TABLE t ADD DISTRIBUTION INTO 3 BUCKETS", "already defined the distribution"),
        ("ALTER TABLE v MODIFY DISTRIBUTION INTO 3 BUCKETS", "does not define any distribution"),
        ("CREATE TABLE x (a INT) DISTRIBUTED BY (c)", "Invalid bucket key 'c'"),
        ("INSERT INTO u VALUES (1)", "is distributed into buckets"),
    ):
        with pytest.raises(ValidationError, match=said):
            ask(session, statement)
