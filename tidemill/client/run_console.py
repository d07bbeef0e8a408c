"""The console of a ``tidemill run``: a gateway's, which opens no sessions and shows the run's jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.client.run_watch import RunWatch
from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.rest.console import HOME
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.service.metrics import Metrics
from tidemill.gateway.service.service import Gateway


@contextmanager
def served(watch: RunWatch, host: str, port: int) -> Iterator[str]:
    """Its address, which standard error names. SetupError where the port is taken, or the host is not of this
    machine alone."""
    config = Configuration({g.REST_ADDRESS.key: host, g.REST_PORT.key: str(port)})
    gateway = Gateway(
        config=config,
        new_session=None,
        metrics=Metrics(jobs=watch.metrics),
        jobs=lambda _: watch.jobs(),
        records=lambda _: watch.records,
        watches={"": watch.watch},
    )
    endpoint = RestEndpoint(gateway, config)
    endpoint.start()
    sys.stderr.write(f"Console on {endpoint.address}{HOME}\n")
    try:
        yield endpoint.address
    finally:
        endpoint.stop()
        gateway.close()
