"""postgres-cdc against a real server, without Spark: what is planned, and what is read."""

from __future__ import annotations

import pytest

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc.sources import NO_LIMIT, Row, cdc, parts, rows, step
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.postgres_cdc.offsets import lsn_text
from tidemill.connectors.postgres_cdc.server import ExportedSnapshot
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError


def test_a_snapshot_and_then_changes(server: Server) -> None:
    with server.connect() as open:
        open.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)")
        made = cdc(server)
        seen, at = step(made, None)
        assert sorted(seen) == [("+I", 1, "a"), ("+I", 2, None)]
        open.execute("UPDATE t SET name = 'b' WHERE id = 1")
        open.execute("DELETE FROM t WHERE id = 2")
        open.execute("INSERT INTO t VALUES (3, '')")
        seen, after = step(made, at)
    assert seen == [("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, None), ("+I", 3, "")]
    assert rows(made, at, after) == seen  # as often as asked
    assert step(made, after) == ([], after)


def test_transactions_around_the_snapshot_are_in_it_or_behind_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is open when the snapshot is taken comes later, one that ended just before does not come
    again."""
    made = cdc(server)
    with server.connect() as open, server.connect() as other:
        export_snapshot = made.server.export_snapshot

        def export_between(_: object) -> ExportedSnapshot:
            other.execute("BEGIN")
            other.execute("INSERT INTO t VALUES (1, 'open')")
            open.execute("INSERT INTO t VALUES (2, 'ended')")
            snapshot = export_snapshot()
            open.execute("INSERT INTO t VALUES (3, 'later')")
            other.execute("COMMIT")
            return snapshot

        monkeypatch.setattr(type(made.server), "export_snapshot", export_between)
        seen, at = step(made, None)
        assert seen == [("+I", 2, "ended")]
        assert at["lsn"] < at["seen"]["until"]
        seen, at = step(made, at)
        assert seen == [("+I", 3, "later"), ("+I", 1, "open")]
        assert "seen" not in at


def test_changes_by_key(server: Server) -> None:
    """Without REPLICA IDENTITY FULL; a row whose key changes is deleted under its old one."""
    with server.connect() as open:
        open.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
        made = cdc(server, changelog__mode="upsert")
        seen, at = step(made, None)
        open.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        open.execute("UPDATE t SET name = 'c' WHERE id = 1")
        open.execute("UPDATE t SET id = 5 WHERE id = 2")
        open.execute("DELETE FROM t WHERE id = 1")
        seen, at = step(made, at)
        expected = [
            ("+I", 1, "a"),
            ("+I", 2, "b"),
            ("+U", 1, "c"),
            ("-D", 2, None),
            ("+U", 5, "b"),
            ("-D", 1, None),
        ]
        assert seen == expected
        open.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        open.execute("UPDATE t SET name = 'd'")
        open.execute("UPDATE t SET id = 6")
        seen, at = step(made, at)
        assert seen == [("+U", 5, "d"), ("-D", 5, "d"), ("+U", 6, "d")]
        open.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT; ALTER TABLE t DROP CONSTRAINT t_pkey")
        open.execute("ALTER TABLE t ALTER name SET NOT NULL; CREATE UNIQUE INDEX u ON t (name)")
        open.execute("ALTER TABLE t REPLICA IDENTITY USING INDEX u")
        open.execute("UPDATE t SET id = 7")
        with pytest.raises(WorkerError, match=r"is \(name\), but the declared PRIMARY KEY is \(id\)"):
            step(made, at)


def test_epochs_are_whole_transactions_in_pieces_of_any_size(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many transactions, a piece of one or few messages at a time: the rows are those of one large piece."""
    with server.connect() as open:
        made = cdc(server, sequence=True)
        _, first = step(made, None)
        for n in range(10):
            with open.transaction():
                open.execute(f"INSERT INTO t SELECT g, 'a' FROM generate_series({n * 10}, {n * 10 + 4}) g")
                open.execute(f"UPDATE t SET name = 'b{n}' WHERE id = {n * 10}")
                open.execute(f"ALTER TABLE t ADD COLUMN more{n} int")
                open.execute(f"DELETE FROM t WHERE id = {n * 10 + 1}")
    whole, end = step(made, first)
    assert len(whole) == 10 * 8
    with monkeypatch.context() as patched:
        patched.setattr("tidemill.connectors.postgres_cdc.reading._FIRST", 1)
        patched.setattr("tidemill.connectors.postgres_cdc.reading._MOST", 3)
        assert rows(made, first, end) == whole
        pieces = [b for p in parts(made, first, end) for b in made.reader.read(p)]
    numbers = [n for piece in pieces for n in piece[SEQUENCE_COLUMN].to_pylist()]
    assert numbers == sorted(set(numbers))
    at, cut, ends = first, [], []
    made = cdc(server, sequence=True)
    while True:
        seen, at = step(made, at, ReadLimit(rows=12))
        if not seen:
            break
        cut += seen
        ends.append(len(seen))
    assert cut == whole
    assert ends == [16] * 5


def test_tables_that_share_a_slot_lose_nothing(server: Server) -> None:
    """The slot goes no further than the table that has read least, whichever plans first."""
    one, other = cdc(server), cdc(server)
    with server.connect() as open:
        (_, at), (_, behind) = step(one, None), step(other, None)
        for n in range(3):
            open.execute(f"INSERT INTO t VALUES ({n}, 'a')")
            seen, at = step(one, at)
            assert seen == [("+I", n, "a")]
            stays, _ = step(other, behind)
            assert len(stays) == n + 1
        assert [step(other, behind)[0] for _ in range(2)] == [[("+I", n, "a") for n in range(3)]] * 2
        seen, behind = step(other, behind, ReadLimit(rows=1))
        assert seen == [("+I", 0, "a")]
        for n in (1, 2):
            seen, behind = step(other, behind, ReadLimit(rows=1))
            assert seen == [("+I", n, "a")]
        for _ in range(2):
            assert step(one, at) == ([], at)
            assert step(other, behind) == ([], behind)
        (confirmed,) = open.execute("SELECT confirmed_flush_lsn FROM pg_replication_slots").fetchone() or ()
        assert confirmed == lsn_text(at["lsn"])


def test_a_slot_moves_over_changes_of_other_tables(server: Server) -> None:
    """By an epoch without rows, once there is much of them; else the server would keep its log for ever."""
    times = iter(range(40, 1000, 40))
    made = cdc(server)
    made.clock = lambda: next(times)
    with server.connect() as open:
        _, at = step(made, None)
        open.execute("CREATE TABLE noise (a text)")
        assert made.is_empty(at, made.next_offset(at, NO_LIMIT))
        open.execute("INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
        end = made.next_offset(at, NO_LIMIT)
        assert not made.is_empty(at, end)
        assert rows(made, at, end) == []
        open.execute("INSERT INTO t VALUES (1, 'a')")
        seen, end = step(made, end)
        assert seen == [("+I", 1, "a")]


def test_changes_of_other_tables_in_the_publication_are_passed_over(server: Server) -> None:
    with server.connect() as open:
        open.execute("CREATE TABLE other (id INT PRIMARY KEY)")
        made = cdc(server, debezium_publication_autocreate_mode="all_tables", sequence=True)
        _, at = step(made, None)
        for n in range(5):
            open.execute(f"INSERT INTO other VALUES ({n})")
        assert made.is_empty(at, made.next_offset(at, NO_LIMIT))
        open.execute("BEGIN; INSERT INTO other VALUES (7); INSERT INTO t VALUES (1, 'a'); COMMIT")
        seen: list[Row] = []
        while not seen:
            seen, at = step(made, at, ReadLimit(rows=2))  # each time some of what is there
        assert seen == [("+I", 1, "a")]
        assert at["count"] == 1
        open.execute("TRUNCATE other")
        assert step(made, at)[0] == []


def test_where_a_job_may_begin(server: Server) -> None:
    with server.connect() as open:
        open.execute("INSERT INTO t VALUES (1, 'before')")
        latest = cdc(server, scan_startup_mode="latest-offset")
        begun = latest.next_offset(None, NO_LIMIT)
        assert latest.is_empty(None, begun)
        open.execute("INSERT INTO t VALUES (2, 'after')")
        end = latest.next_offset(None, NO_LIMIT)
        assert rows(latest, None, end) == [("+I", 2, "after")]
        again = cdc(server, scan_startup_mode="latest-offset")
        assert again.is_readable(None, end)
        assert rows(again, None, end) == [("+I", 2, "after")]  # a plan of another process
        committed = cdc(server, scan_startup_mode="committed-offset")
        assert step(committed, None)[0] == [("+I", 2, "after")]
        once = cdc(server, scan_startup_mode="snapshot", slot_name="none")
        seen, end = step(once, None)
        assert sorted(seen) == [("+I", 1, "before"), ("+I", 2, "after")]
        assert once.is_bounded
        assert once.is_finished(end)
        with pytest.raises(ConnectorError, match="slot 'none' does not exist"):
            cdc(server, scan_startup_mode="committed-offset", slot_name="none").next_offset(None, NO_LIMIT)
        snapshot = cdc(server).next_offset(None, NO_LIMIT)
        assert not cdc(server).is_readable(None, snapshot)
        assert latest.is_readable(snapshot, end)


def test_parts_of_a_snapshot_have_all_rows_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.connectors.postgres_cdc.source._LEAST_BLOCKS", 5)
    with server.connect() as open:
        open.execute("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 3000) g")
        made = cdc(server, fields=("id",))
        made.parallelism = 4
        end = made.next_offset(None, NO_LIMIT)
        open.execute("UPDATE t SET name = 'moved'")
        assert len(parts(made, None, end)) == 4
        assert sorted(rows(made, None, end)) == [("+I", n) for n in range(1, 3001)]
        made.server.release()
