"""A server with an empty table that sources follow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc import forget_slots


@pytest.fixture
def server(postgres: Server) -> Iterator[Server]:
    """An empty database, whose slots and publications go."""
    postgres.clear()
    with postgres.connect() as open:
        open.execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)")
        open.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    yield postgres
    forget_slots(postgres)
