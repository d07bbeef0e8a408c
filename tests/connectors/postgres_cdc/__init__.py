"""Tables of ``postgres-cdc`` for tests, and what tests leave in the server."""

from __future__ import annotations

from psycopg import sql

from tests.connectors.postgres import Server


def cdc_options(server: Server, **more: str) -> dict[str, str]:
    """``a__b`` stands for the option ``a-b``, ``a_b`` for ``a.b``."""
    plain = {
        "connector": "postgres-cdc",
        "hostname": "127.0.0.1",
        "port": str(server.port),
        "username": "postgres",
        "password": "x",
        "database-name": "postgres",
        "schema-name": "public",
        "table-name": "t",
        "slot.name": "s",
    }
    return {**plain, **{key.replace("__", "-").replace("_", "."): value for key, value in more.items()}}


def cdc_table(server: Server, name: str, columns: str, **more: str) -> str:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in cdc_options(server, **more).items())
    return f"CREATE TABLE {name} ({columns}) WITH ({listed})"


def forget_slots(server: Server) -> None:
    """Removes slots and publications."""
    with server.connect() as open:
        open.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        for (name,) in open.execute("SELECT pubname FROM pg_publication").fetchall():
            open.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(str(name))))
