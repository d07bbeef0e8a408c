"""While an epoch runs, its sources look at what comes after it: the driver has little else to do then.

Nothing is planned by that: the next epoch is planned, and written down, when this one is committed. Cost: a
thread for an epoch after which there is much to look through, waited for at its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tidemill.connectors.api import LookingSource, Offset, ReadLimit, Source


@contextmanager
def looking_ahead(
    sources: Mapping[str, Source], offsets: Mapping[str, Offset], limit: ReadLimit
) -> Iterator[None]:
    """``offsets``: where the epoch ends that the block runs; ``limit``: of the next one."""
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
        looking: object = source
        if isinstance(looking, LookingSource):
            look = looking.ahead(offsets[key], limit)
            if look is not None:
                yield look


def _look(looks: Sequence[Callable[[], None]]) -> None:
    for look in looks:
        look()
