"""Plan files that people have edited, or that are damaged: every fault is an error that names its place."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import StateError, TidemillError, ValidationError
from tidemill.plan.optimizer import optimize
from tidemill.session import inserts, planning
from tidemill.session.environment import TableEnvironment

Json = Any
TABLES = (
    "CREATE TABLE src (id INT NOT NULL, name STRING, ts TIMESTAMP(3), up AS UPPER(name), "
    "WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (id) NOT ENFORCED) "
    "DISTRIBUTED BY HASH(id) INTO 3 BUCKETS WITH ('connector'='datagen')",
    "CREATE TEMPORARY TABLE more (id INT, tags ARRAY<STRING>) WITH ('connector'='datagen')",
    "CREATE VIEW v AS SELECT src.id, name, ts, up, tags FROM src JOIN more ON src.id = more.id",
    "CREATE FUNCTION plus AS 'tests.user_functions.samples.plus' LANGUAGE PYTHON",
    "CREATE TEMPORARY SYSTEM FUNCTION more_of AS 'tests.user_functions.samples.plus' LANGUAGE PYTHON",
    "CREATE TABLE snk (name STRING, c BIGINT) WITH ('connector'='blackhole')",
)
INSERT = "INSERT INTO snk SELECT UPPER(name), COUNT(*) FROM v WHERE id > 1 GROUP BY UPPER(name)"
VALUES: tuple[Json, ...] = (
    None, True, 0, -1, 2.5, 1 << 70, "", "x", "a`b", "view", "NULL", "INT *ROWTIME*", "\0", "\ud800",
    [], {}, [None], [[]], {"a": 1}, "ROW<a", "TIMESTAMP(3) *x*", "metadata", "DECIMAL(99, 9)", "ARRAY<" * 900,
)  # fmt: skip


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    """Statements are planned, and no job starts."""
    made = new_session()
    ask(made, *TABLES)

    def planned(context: Any, sinks: Any, written: Any) -> None:
        planning.physical_job(context.configuration, [optimize(sink) for sink in sinks])

    monkeypatch.setattr(inserts, "run_inserts", planned)
    return made


@pytest.fixture
def plan(session: TableEnvironment, tmp_path: Path) -> Path:
    file = tmp_path / "plan"
    ask(session, f"COMPILE PLAN '{file}' FOR {INSERT}")
    return file


def places(document: Json) -> Iterator[tuple[Json, Any]]:
    """Every container with each key in it."""
    keys = list(document) if isinstance(document, dict) else range(len(document))
    for key in keys:
        yield document, key
        if isinstance(document[key], dict | list):
            yield from places(document[key])


def changed(document: Json, chance: random.Random) -> Json:
    made = copy.deepcopy(document)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        found = list(places(made))
        if found:
            _change(*chance.choice(found), chance, [inner[key] for inner, key in found])
    return made


def _change(inner: Json, key: Any, chance: random.Random, others: list[Json]) -> None:
    match chance.randrange(6):
        case 0:
            del inner[key]
        case 1 if isinstance(inner, dict):
            inner[chance.choice(("x", "kind", "text", "path"))] = inner.pop(key)
        case 2:
            inner[key] = copy.deepcopy(chance.choice(others))
        case 3 if isinstance(inner[key], str) and inner[key]:
            at = chance.randrange(len(inner[key]))
            inner[key] = inner[key][:at] + chance.choice(("", "(", "'", "x", " ")) + inner[key][at + 1 :]
        case 4 if isinstance(inner, list):
            inner.append(inner[key])
        case _:
            inner[key] = copy.deepcopy(chance.choice(VALUES))


@pytest.mark.parametrize("changes", [250, pytest.param(4000, marks=pytest.mark.thorough)])
def test_whatever_is_changed_an_error_says_so(session: TableEnvironment, plan: Path, changes: int) -> None:
    good, chance = json.loads(plan.read_text()), random.Random(changes)
    refused = [answer(session, plan, changed(good, chance)) for _ in range(changes)]
    assert changes * 0.7 < len(list(filter(None, refused))) < changes
    assert "INTERNAL" not in refused


def answer(session: TableEnvironment, plan: Path, document: Json) -> str:
    """The error's code; '' if the plan can be executed."""
    plan.write_text(json.dumps(document))
    try:
        session.execute_sql(f"EXECUTE PLAN '{plan}'")
    except TidemillError as e:
        return e.code
    except Exception as e:
        raise AssertionError(plan.read_text()) from e
    return ""


DATABASE = ("session", "catalogs", 0, "databases", 0)
SNK = (*DATABASE, "objects", 2)
FAULTS: tuple[tuple[tuple[Any, ...], Json, str], ...] = (
    (("statement",), 5, "statement: expected a text"),
    (("statement",), "SELECT 1", "statement: expected INSERT or EXECUTE STATEMENT SET"),
    (("statement",), "INSERT INTO", 'statement: Encountered "<EOF>" at line 1, column 11.'),
    (("session",), [], "session: expected an object"),
    (("session", "current"), ["a"], "session.current: expected 2 values, found a list"),
    (
        (*DATABASE, "objects"),
        {},
        "databases[0].objects: expected a list, found an object",
    ),
    ((*SNK, "kind"), "x", "objects[2].kind: expected 'table' or 'view', found \"x\""),
    ((*SNK, "path"), {"catalog": "c"}, "objects[2].path: 'database' is missing"),
    ((*SNK, "colour"), "red", "objects[2]: 'colour' is not known"),
    ((*SNK, "columns"), [], "objects[2].columns: expected names that differ"),
    ((*SNK, "columns", 1, "type"), "BIGIT", "objects[2].columns[1].type: Unknown identifier 'BIGIT'"),
    ((*SNK, "columns", 1, "kind"), "c", "expected 'physical' or 'computed' or 'metadata', found \"c\""),
    ((*SNK, "columns", 1, "virtual"), 1, "objects[2].columns[1].virtual: expected true or false, found 1"),
    ((*SNK, "options", "connector"), None, "objects[2].options['connector']: expected a text, found null"),
    ((*SNK, "primary_key"), ["no"], "objects[2]: there is no column 'no'"),
    ((*SNK, "watermark"), {"column": "c", "expression": "c"}, "'c' is no column of timestamps"),
    ((*DATABASE, "objects", 1, "column_names"), ["id"], "not as many 'column_types' as 'column_names'"),
)


@pytest.mark.parametrize(("where", "value", "message"), FAULTS)
def test_an_error_names_the_file_and_the_place(
    session: TableEnvironment, plan: Path, where: tuple[Any, ...], value: Json, message: str
) -> None:
    document = json.loads(plan.read_text())
    inner = document
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    plan.write_text(json.dumps(document))
    with pytest.raises(StateError) as refused:
        session.execute_sql(f"EXECUTE PLAN '{plan}'")
    assert f"The plan file '{plan}' is damaged: " in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"format": 1,\n "statement": }', "line 2 column 15"),
        ("[" * 100_000, "recursion"),
        ("\xff", "Expecting value: line 1 column 1"),
    ],
)
def test_what_is_no_json_is_no_plan(session: TableEnvironment, plan: Path, text: str, reason: str) -> None:
    plan.write_text(text)
    with pytest.raises(StateError, match=f"'{plan}' is not a plan that COMPILE PLAN.*{reason}"):
        session.execute_sql(f"EXECUTE PLAN '{plan}'")


def test_a_plan_whose_statement_does_not_fit_names_the_file(session: TableEnvironment, plan: Path) -> None:
    document = json.loads(plan.read_text())
    document["statement"] = "INSERT INTO snk SELECT name, colour FROM v"
    plan.write_text(json.dumps(document))
    with pytest.raises(ValidationError, match=f"In the statement of the plan file '{plan}': Column 'colour'"):
        session.execute_sql(f"EXECUTE PLAN '{plan}'")
