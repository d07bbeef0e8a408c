"""A connection: one session of the gateway."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.client.gateway_client import GatewayClient
from tidemill.dbapi.cursor import Cursor
from tidemill.dbapi.errors import InterfaceError, NotSupportedError, translated
from tidemill.gateway.endpoints.rest import arrow_pages

DEFAULTS = {"execution.runtime-mode": "batch", "table.dml-sync": "true"}


def connect(url: str, properties: Mapping[str, str] | None = None, *, name: str = "") -> Connection:
    """``url``: ``http://[USER:PASSWORD@]HOST:PORT``; ``properties``: options of the session. An INSERT is
    waited for, unless they say otherwise."""
    with translated():
        client = GatewayClient(url, {arrow_pages.ARROW: arrow_pages.read})
        return Connection(client.open({**DEFAULTS, **(properties or {})}, name=name))


class Connection:
    """There are no transactions: ``commit`` does nothing, ``rollback`` is refused."""

    def __init__(self, client: GatewayClient) -> None:
        self.client = client
        self._closed = False

    def cursor(self) -> Cursor:
        self.check_open()
        return Cursor(self)

    def commit(self) -> None:
        self.check_open()

    def rollback(self) -> None:
        raise NotSupportedError("There are no transactions.")

    def close(self) -> None:
        """Ends the session; jobs that it has started go on."""
        if not self._closed:
            self._closed = True
            with translated():
                self.client.close()

    def check_open(self) -> None:
        if self._closed:
            raise InterfaceError("The connection is closed.")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
