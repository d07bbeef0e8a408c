"""Lets sources look at their next input while an epoch runs, when the driver has little else to do.

Looking ahead plans nothing: the next epoch is planned and recorded after the commit of the current
epoch. Cost: a thread for each epoch with much input after it. The end of the epoch waits for the
thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tidemill.connectors.api import Offset, ReadLimit, Source


@contextmanager
def looking_ahead(
    sources: Mapping[str, Source], offsets: Mapping[str, Offset], limit: ReadLimit
) -> Iterator[None]:
    """``offsets``: the end of the epoch that the block runs. ``limit``: the limit of the next epoch."""
    looks = list(_looks(sources, offsets, limit))
    if not looks:
        yield
        return
    thread = threading.Thread(target=_look, args=(looks,), name="tidemill-look-ahead", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _looks(
    sources: Mapping[str, Source], offsets: Mapping[str, Offset], limit: ReadLimit
) -> Iterator[Callable[[], None]]:
    for key, source in sources.items():
        look = source.ahead(offsets[key], limit)
        if look is not None:
            yield look


def _look(looks: Sequence[Callable[[], None]]) -> None:
    for look in looks:
        look()
