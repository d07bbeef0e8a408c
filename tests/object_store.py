"""A local S3 server of the suite's own, and the settings that reach it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping

import pytest
from pyarrow import fs


@contextlib.contextmanager
def server() -> Iterator[Mapping[str, str]]:
    """The settings of a server on loopback; skips where moto is not installed."""
    moto = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    try:
        yield {
            "s3.endpoint": f"http://{host}:{port}",
            "s3.region": "us-east-1",
            "s3.access-key": "key-of-the-test",
            "s3.secret-key": "secret-of-the-test",
        }
    finally:
        running.stop()


def bucket(settings: Mapping[str, str], name: str) -> fs.S3FileSystem:
    """Makes a bucket; gives the file system to look into it with."""
    host = settings["s3.endpoint"].removeprefix("http://")
    system = fs.S3FileSystem(
        access_key=settings["s3.access-key"],
        secret_key=settings["s3.secret-key"],
        region=settings["s3.region"],
        endpoint_override=host,
        scheme="http",
        allow_bucket_creation=True,
    )
    system.create_dir(name)
    return system
