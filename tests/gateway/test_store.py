"""The store: what is put is there for the next process; what cannot be used says so."""

from __future__ import annotations

import datetime as dt
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from tests.session.environments import ask, new_session
from tidemill.config.option import Configuration
from tidemill.connectors.jdbc.urls import patience
from tidemill.errors import SetupError, StateError
from tidemill.gateway.security.keys import seal_by
from tidemill.gateway.service.persistence import StoredMemory
from tidemill.gateway.service.results import Results
from tidemill.gateway.store.store import (
    JOBS,
    METADATA,
    OPERATIONS,
    SESSIONS,
    VERSIONS,
    KeptJob,
    KeptOperation,
    KeptSession,
    Store,
)
from tidemill.gateway.store.writer import Rows, Writer
from tidemill.runtime.events import JobBegun, JobFailed
from tidemill.runtime.job.plan_nodes import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress, NodeProgress
from tidemill.session.catalogs.locations import sqlite_url
from tidemill.session.environment import TableEnvironment
from tidemill.session.history.watch import JobLook, JobWatch
from tidemill.session.jobs.started import ENDED
from tidemill.session.snapshot import restored, taken

THEN = dt.datetime(2026, 1, 2, 3, 4, 5, 6_000, tzinfo=dt.UTC)
SESSION = KeptSession(handle="s", name="n", owner="ann", opened=THEN, snapshot={"a": [1, "ü"]})
OPERATION = KeptOperation(handle="o", session="s", submitted=THEN, status="RUNNING")
JOB = KeptJob(
    place="/p", job_id="j", name="n", owner="", started=THEN, status="RUNNING", statements=["x"], snapshot={}
)


@pytest.fixture
def url(database: str) -> Iterator[str]:
    """A database of each kind there is, as SQLAlchemy names it."""
    found = database.removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    yield found
    engine = sa.create_engine(found.replace("postgresql:", "postgresql+psycopg:"))
    METADATA.drop_all(engine)
    engine.dispose()


def test_what_is_put_is_there_for_the_next_process(url: str) -> None:
    store = Store.open(url)
    store.put_session(SESSION)
    store.put_session(replace(SESSION, snapshot={"b": None}))
    store.put_session(replace(SESSION, handle="gone"))
    for handle in ("o", "p", "q"):
        store.add_operation(replace(OPERATION, handle=handle)).result()
    store.add_operation(replace(OPERATION, handle="g", session="gone")).result()
    store.end_operation("p", "ERROR", {"code": "X"}, None)
    store.remove_operation("q").result()
    store.remove_session("gone")
    store.put_job(JOB)
    store.put_job(replace(JOB, place="/q"))
    store.end_job("/q", "FAILED", THEN, "why")
    store.close()
    store = Store.open(url)
    assert store.sessions() == [replace(SESSION, snapshot={"b": None})]
    assert sorted(store.operations(), key=lambda o: o.handle) == [
        OPERATION,
        replace(OPERATION, handle="p", status="ERROR", error={"code": "X"}),
    ]
    assert sorted(store.jobs(), key=lambda j: j.place) == [
        JOB,
        replace(JOB, place="/q", status="FAILED", ended=THEN, error="why"),
    ]
    with store.engine.begin() as connection:
        connection.execute(VERSIONS.update().values(version=99))
    store.close()
    with pytest.raises(StateError, match="has version 99"):
        Store.open(url)


def test_what_holds_secrets_is_sealed(url: str, tmp_path: Path) -> None:
    """Also for who has the key's next one beside it; what was kept before there was a key is read."""
    key = tmp_path / "key"
    plain = Store.open(url)
    plain.put_session(replace(SESSION, handle="before"))
    plain.close()
    store = Store.open(url, seal_by(str(key)))
    secret = {"password": "hidden"}
    store.put_session(replace(SESSION, snapshot=secret))
    store.put_job(replace(JOB, statements=["hidden"], snapshot=secret))
    for table in (SESSIONS, JOBS):
        with store.engine.connect() as connection:
            assert "hidden" not in str(connection.execute(sa.select(table)).all())
    store.close()
    key.write_bytes(Fernet.generate_key() + b"\n" + key.read_bytes())
    store = Store.open(url, seal_by(str(key)))
    assert {s.handle: s.snapshot for s in store.sessions()} == {"before": SESSION.snapshot, "s": secret}
    assert [(j.statements, j.snapshot) for j in store.jobs()] == [(["hidden"], secret)]
    store.close()
    key.unlink()
    store = Store.open(url, seal_by(str(key)))
    with pytest.raises(StateError, match="encrypted with a key that is not in"):
        store.sessions()
    store.close()


def test_files_of_keys_that_cannot_be_used(tmp_path: Path) -> None:
    key = tmp_path / "key"
    seal_by(str(key))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    key.chmod(0o640)
    with pytest.raises(SetupError, match="Other users can read"):
        seal_by(str(key))
    key.chmod(0o600)
    for text in ("", "short\n", "\xff"):
        key.write_text(text, encoding="latin-1")
        with pytest.raises(SetupError, match="contains no keys"):
            seal_by(str(key))
    with pytest.raises(SetupError, match="cannot be used"):
        seal_by(str(tmp_path / "no" / "key"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:////proc/nosuch/gateway.db", "cannot be used|No such file"),
        ("nosuch://u:secret@x/d", "not the URL of a usable database"),
        ("not a url", "not the URL of a usable database"),
    ],
)
def test_a_store_that_cannot_be_used(url: str, said: str) -> None:
    with pytest.raises(StateError, match=said) as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)


def test_a_store_that_can_only_be_read_is_noticed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "store.db"
    Store.open(f"sqlite:///{file}").close()
    with pytest.raises(StateError, match="readonly") as raised:
        Store.open(f"sqlite:///file:{file}?mode=ro&uri=true")
    assert not raised.value.hint
    assert not (tmp_path / "file:").exists()


def test_a_database_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(StateError, match="timeout"):
            Store.open(f"postgresql://u:p@{place}/d?connect_timeout=2")
        assert patience(sa.make_url(f"postgresql+psycopg://{place}/d")) == {
            "connect_timeout": 10,
            "tcp_user_timeout": 30_000,
        }
        assert patience(sa.make_url("sqlite:///d")) == {}


def test_of_ended_jobs_the_last_are_kept(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(str(tmp_path / "g.db")))
    keeping = StoredMemory(
        store=store, results=Results(Configuration({}), str(tmp_path)), jobs_folder="/jobs"
    )
    later = [THEN + dt.timedelta(seconds=n) for n in range(ENDED + 2)]
    store.put_job(replace(JOB, place="running"))
    for n, started in enumerate(later):
        store.put_job(replace(JOB, place=f"/{n}", started=started, status="FINISHED"))
    kept = [job.place for job in keeping.kept_jobs()]
    assert kept == ["running", *(f"/{n}" for n in range(2, ENDED + 2))]
    assert [job.place for job in store.jobs()] == kept
    store.close()


def test_a_store_that_goes_away(tmp_path: Path) -> None:
    store = Store.open(sqlite_url(str(tmp_path / "g.db")))
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE tidemill_operations"))
    with pytest.raises(StateError, match="cannot be used"):
        store.add_operation(OPERATION).result()
    store.put_session(SESSION)


def test_writes_that_wait_together_are_one_transaction_and_spoil_each_other_nothing(tmp_path: Path) -> None:
    database = sa.create_engine(sqlite_url(str(tmp_path / "g.db")))
    METADATA.create_all(database)
    transactions: list[sa.Connection] = []
    begun, go_on = threading.Event(), threading.Event()

    @contextmanager
    def transaction() -> Iterator[sa.Connection]:
        with database.begin() as connection:
            transactions.append(connection)
            yield connection

    def wait(_: sa.Connection) -> None:
        begun.set()
        assert go_on.wait(60)

    def written(*handles: str) -> Rows:
        rows = [{"handle": h, "session": "s", "submitted": 1, "status": "RUNNING"} for h in handles]
        return Rows(add, tuple(rows))

    add, remove = OPERATIONS.insert(), OPERATIONS.delete().where(OPERATIONS.c.handle == sa.bindparam("h"))
    writer = Writer(transaction, (add, remove))
    first = writer.put(wait)
    assert begun.wait(60)
    good = [writer.put(written("a")), writer.put(Rows(remove, ({"h": "a"},))), writer.put(written("b"))]
    go_on.set()
    for future in (first, *good):
        future.result(60)
    assert len(transactions) == 2
    begun.clear()
    go_on.clear()
    held = writer.put(wait)
    assert begun.wait(60)
    bad, after = writer.put(written("b")), writer.put(written("c"))
    go_on.set()
    held.result(60)
    after.result(60)
    with pytest.raises(sa.exc.IntegrityError):
        bad.result(60)
    later = writer.put(written("d"), later=True)
    writer.write(written("e"))
    assert later.done()
    with pytest.raises(sa.exc.IntegrityError):
        writer.write(written("e"))
    writer.put(written("f"), later=True).result(60)
    last = writer.put(written("g"), later=True)
    writer.close()
    assert last.done()
    with pytest.raises(StateError, match="takes no more writes"):
        writer.write(written("h"))
    with database.connect() as connection:
        assert sorted(connection.execute(sa.select(OPERATIONS.c.handle)).scalars()) == list("bcdefg")
    database.dispose()


def test_a_session_taken_down_answers_as_before() -> None:
    session = new_session(table__local_time_zone="Europe/Berlin")
    ask(
        session,
        "CREATE CATALOG c WITH ('type'='generic_in_memory')",
        "CREATE DATABASE c.d COMMENT 'x' WITH ('k'='v')",
        "USE c.d",
        """CREATE TABLE t (id INT NOT NULL COMMENT 'it''s', r ROW<`a b` DECIMAL(10, 2) NOT NULL, c CHAR(3)>,
         ts TIMESTAMP(3), m MAP<STRING, ARRAY<BIGINT NOT NULL>>, p AS PROCTIME(), h AS `r`.`c` || 'x',
         k STRING METADATA FROM 'key' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
         PRIMARY KEY (id) NOT ENFORCED) COMMENT 'y' PARTITIONED BY (id)
         WITH ('connector'='datagen', 'password'='secret')""",
        "CREATE VIEW v (a) AS SELECT id FROM t",
        "CREATE TEMPORARY TABLE tt (a INT) WITH ('connector'='blackhole')",
        "CREATE TEMPORARY SYSTEM FUNCTION f AS 'm.f' LANGUAGE PYTHON",
        "CREATE FUNCTION g AS 'm.g' LANGUAGE PYTHON",
        "SET 'my.key' = 'v'",
    )
    again = TableEnvironment(restored(taken(session.context)))
    for statement in (
        "SHOW CATALOGS",
        "SHOW CURRENT DATABASE",
        "SHOW CREATE CATALOG c",
        "SHOW TABLES",
        "SHOW CREATE TABLE t",
        "SHOW CREATE TABLE tt",
        "SHOW CREATE VIEW v",
        "DESCRIBE t",
        "SHOW USER FUNCTIONS",
        "SET",
    ):
        assert ask(again, statement) == ask(session, statement)
    assert again.context.catalogs.catalogs["c"].databases == session.context.catalogs.catalogs["c"].databases
    assert taken(again.context) == taken(session.context)
    with pytest.raises(StateError, match="format 99"):
        restored({**taken(session.context), "format": 99})


def test_what_was_seen_of_a_job_is_kept(url: str, tmp_path: Path) -> None:
    watch = JobWatch()
    node = PlanNode(id="n", role=PlanRole.OPERATOR, name="GroupAggregate", inputs=("s",))
    watch.event(JobBegun(job_id="j", name="mine", plan=(node,)))
    watch.event(JobFailed(job_id="j", error="down", wait=1.5))
    epoch = EpochProgress(
        epoch=1, rows_in=2, rows_out=1, seconds=0.5, state_rows=3, state_bytes=9, job_id="j"
    )
    watch.epoch(replace(epoch, nodes={"n": NodeProgress(rows_in=2, state_bytes=9)}, watermark=7))
    look = watch.look("j")
    assert look is not None
    store = Store.open(url)
    results = Results(Configuration({}), str(tmp_path))
    keeping = StoredMemory(store=store, results=results, jobs_folder=str(tmp_path))
    keeping.job_seen("/p", JobLook(name="before"))
    keeping.job_seen("/p", look)
    assert keeping.job_history("/p") == look
    later = JobWatch()
    later.put_back("j", look)
    assert later.look("j") == look
    store.put_history("/q", {"of": "another version"})
    assert keeping.job_history("/q") is keeping.job_history("/none") is None
    store.remove_job("/p")
    assert keeping.job_history("/p") is None
    store.close()


def test_writes_one_after_the_other_have_one_connection_and_a_failure_another(url: str) -> None:
    store = Store.open(url)
    opened: list[object] = []
    sa.event.listen(store.engine, "checkout", lambda connection, *_: opened.append(connection))
    for handle in "abc":
        store.add_operation(replace(OPERATION, handle=handle)).result()
    assert len(opened) <= 1
    with pytest.raises(StateError):
        store.add_operation(replace(OPERATION, handle="a")).result()
    store.add_operation(replace(OPERATION, handle="d")).result()
    assert len(opened) <= 2
    assert [o.handle for o in store.operations()] == [*"abcd"]
    store.close()
