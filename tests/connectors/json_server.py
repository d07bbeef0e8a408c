"""A server on loopback that answers JSON, for tests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]
"""Status and body."""


@contextmanager
def json_server(answer: Callable[[str, str, str, Any], Answer], certificate: str = "") -> Iterator[str]:
    """Its URL. ``answer``: of method, path, the header Authorization, and the body, {} for none.
    ``certificate``: a file with key and certificate, for TLS."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            authorization = self.headers.get("Authorization", "")
            given = json.loads(body) if body else {}
            status, found = answer(self.command, self.path, authorization, given)
            data = b"" if status == 204 or self.command == "HEAD" else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_HEAD = do_DELETE = do_GET

        def log_message(self, *_: Any) -> None:
            """Tests are silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
