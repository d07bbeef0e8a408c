"""Models in the catalog; expectations are Flink's answers."""

from __future__ import annotations

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import SqlSyntaxError, TidemillError, ValidationError
from tidemill.session.environment import TableEnvironment
from tidemill.session.snapshot import restored, taken

MODEL = (
    "CREATE MODEL m INPUT(a INT COMMENT 'x', s STRING NOT NULL) OUTPUT(b ARRAY<INT>) COMMENT 'c' "
    "WITH ('provider'='openai', 'api-key'='very secret')"
)


@pytest.fixture
def session() -> TableEnvironment:
    made = new_session()
    made.execute_sql(MODEL)
    return made


def test_shown_and_described(session: TableEnvironment) -> None:
    assert ask(session, "SHOW MODELS") == [("m",)]
    assert ask(session, "DESCRIBE MODEL m") == [
        ("a", "INT", True, True, "x"),
        ("s", "STRING", False, True, None),
        ("b", "ARRAY<INT>", True, False, None),
    ]
    text = ask(session, "SHOW CREATE MODEL m")[0][0]
    assert text == (
        "CREATE MODEL `default_catalog`.`default_database`.`m`\n"
        "INPUT (`a` INT COMMENT 'x', `s` VARCHAR(2147483647) NOT NULL)\nOUTPUT (`b` ARRAY<INT>)\n"
        "COMMENT 'c'\nWITH (\n  'api-key' = '******',\n  'provider' = 'openai'\n)\n"
    )


def test_changed_kept_and_dropped(session: TableEnvironment) -> None:
    ask(session, "ALTER MODEL m SET ('task'='t', 'k'='v')", "ALTER MODEL m RESET ('k', 'api-key')")
    ask(session, "ALTER MODEL m RENAME TO n", "ALTER MODEL IF EXISTS m SET ('a'='b')")
    ask(session, "CREATE TEMPORARY MODEL n WITH ('provider'='x')")
    again = restored(taken(session.context)).catalogs
    path = again.qualify(("n",))
    permanent, temporary = again.models.find_permanent(path), again.models.find(path)
    assert permanent == session.context.catalogs.models.find_permanent(path)
    assert permanent is not None
    assert permanent.options == {"provider": "openai", "task": "t"}
    assert temporary is not None
    assert temporary.temporary
    with pytest.raises(ValidationError, match="Drop it first before removing the permanent model"):
        session.execute_sql("DROP MODEL n")
    ask(session, "DROP TEMPORARY MODEL n", "DROP MODEL n", "DROP MODEL IF EXISTS n")
    assert ask(session, "SHOW MODELS") == []


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE MODEL m WITH ('provider'='x')", ValidationError, "Model default_database.m already exists"),
        ("CREATE MODEL n INPUT(a INT) WITH ('a'='b')", SqlSyntaxError, "Output column list can not be empty"),
        ("CREATE MODEL n INPUT(a INT) OUTPUT(b INT)", SqlSyntaxError, "property list can not be empty"),
        ("CREATE MODEL n INPUT(a AS 1) OUTPUT(b INT) WITH ('a'='b')", SqlSyntaxError, "names and types only"),
        ("ALTER MODEL n SET ('a'='b')", ValidationError, "Model `.*`n` doesn't exist"),
        ("ALTER MODEL m RESET ()", ValidationError, "does not support empty key"),
        ("DROP MODEL n", ValidationError, "Model with identifier '.*n' does not exist"),
        ("DROP TEMPORARY MODEL m", ValidationError, "Temporary model with identifier"),
        ("DESCRIBE MODEL n", ValidationError, "Model with the identifier '.*n' doesn't exist"),
        ("SHOW CREATE MODEL n", ValidationError, "Model with identifier `.*`n` does not exist"),
        ("SHOW MODELS IN nope", ValidationError, "Database nope does not exist in Catalog default_catalog"),
    ],
)
def test_what_is_refused(
    session: TableEnvironment, statement: str, error: type[TidemillError], message: str
) -> None:
    with pytest.raises(error, match=message):
        session.execute_sql(statement)
    assert ask(session, "SHOW MODELS") == [("m",)]


def test_a_database_of_models_is_not_empty(session: TableEnvironment) -> None:
    ask(session, "CREATE DATABASE d", "CREATE MODEL d.n WITH ('provider'='x')")
    with pytest.raises(ValidationError, match="not empty"):
        session.execute_sql("DROP DATABASE d")
    ask(session, "DROP DATABASE d CASCADE")
