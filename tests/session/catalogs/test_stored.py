"""Catalogs that sessions share: what one changes the others see, and nothing is lost between them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import StateError, ValidationError
from tidemill.session.environment import TableEnvironment
from tidemill.session.snapshot import restored, taken

WITH = "WITH ('connector'='datagen', 'number-of-rows'='1')"


@pytest.fixture
def url(database: str) -> str:
    """A database of each kind there is, as SQLAlchemy names it."""
    found = database.removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    return found


def session(url: str, name: str = "c") -> TableEnvironment:
    made = new_session()
    ask(made, f"CREATE CATALOG {name} WITH ('type'='stored', 'url'='{url}')", f"USE CATALOG {name}")
    return made


def test_what_one_session_changes_all_see(url: str) -> None:
    first, second = session(url), session(url)
    ask(first, f"CREATE TABLE t (a INT, b AS a + 1, PRIMARY KEY (a) NOT ENFORCED) {WITH}")
    assert ask(second, "DESCRIBE t")[1][4] == "AS `a` + 1"
    ask(second, "CREATE VIEW v AS SELECT b FROM t", "CREATE DATABASE d COMMENT 'two'")
    ask(second, "CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON", "ALTER TABLE t RENAME TO u")
    assert ask(first, "SHOW TABLES") == [("u",), ("v",)]
    assert ask(first, "SHOW DATABASES") == [("d",), ("default",)]
    assert ask(first, "SHOW USER FUNCTIONS") == [("f",)]
    with pytest.raises(ValidationError, match=r"Database d already exists in Catalog c\."):
        ask(first, "CREATE DATABASE d")
    with pytest.raises(ValidationError, match=r"Table \(or view\) default.u already exists"):
        ask(first, f"CREATE TABLE u (x INT) {WITH}")
    ask(first, "DROP TABLE u", "DROP DATABASE d", "DROP FUNCTION f")
    with pytest.raises(ValidationError, match="does not exist"):
        ask(second, "DROP TABLE u")
    # A session that came back, and one that begins now; another catalog of that database is another.
    again = TableEnvironment(restored(taken(first.context)))
    assert ask(again, "SHOW TABLES") == ask(session(url), "SHOW TABLES") == [("v",)]
    assert ask(session(url, "other"), "SHOW TABLES") == []
    # What a job is started from stays as it was.
    whole = taken(first.context, whole=True)
    ask(second, "DROP VIEW v")
    assert ask(TableEnvironment(restored(whole)), "SHOW TABLES") == [("v",)]
    assert ask(first, "SHOW TABLES") == []


def test_changes_at_the_same_time_follow_one_another(url: str) -> None:
    def add(number: int) -> None:
        made = session(url)
        for n in range(10):
            ask(made, f"CREATE TABLE t{number}_{n} (a INT) {WITH}")

    threads = [threading.Thread(target=add, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ask(session(url), "SHOW TABLES")) == 40


def test_a_database_that_cannot_be_used_says_so_when_it_is_needed() -> None:
    made = new_session()
    ask(made, "CREATE CATALOG c WITH ('type'='stored', 'url'='sqlite:////proc/nosuch/x.db')")
    assert ask(made, "SHOW CATALOGS") == [("c",), ("default_catalog",)]
    with pytest.raises(StateError, match="The catalogs' database"):
        ask(made, "CREATE DATABASE c.d")


def test_without_a_url_it_is_this_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ask(new_session(), "CREATE CATALOG c WITH ('type'='stored')", "USE CATALOG c", "CREATE DATABASE d")
    later = new_session()
    ask(later, "CREATE CATALOG c WITH ('type'='stored')")
    assert ask(later, "SHOW DATABASES IN c") == [("d",), ("default",)]
    assert (tmp_path / "tidemill" / "catalogs.db").exists()
