"""Slows down wrong logins: after a few wrong guesses, the next guess must wait.

Guesses are counted per user name and client address, and with a higher limit per address alone. So guesses
from elsewhere lock nobody out. Each wrong guess doubles the wait, up to a minute. A right guess ends it.
Cost: an entry per name and address with recent wrong guesses, at most ``MOST``.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

MOST = 10_000
FREE, FREE_OF_ADDRESS = 5, 50
"""Wrong guesses without a wait, per name and address, and per address."""
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
_NETWORK_BITS = 64
"""Bits of an IPv6 address that count; its owner can choose the others."""
_Key = tuple[str | None, str]


@dataclass(slots=True)
class Guesses:
    """Any thread may call. ``clock``: a monotonic clock in seconds."""

    clock: Callable[[], float] = time.monotonic
    _wrong: OrderedDict[_Key, tuple[int, float]] = field(default_factory=OrderedDict)
    """By user and address: the number of wrong guesses, and the time before which no guess is checked."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, user: str, address: str) -> float:
        """The seconds to wait before a guess is checked. 0: it may be checked now, and counts as wrong until
        ``right`` is called. So concurrent guesses are limited like successive ones."""
        keys = _keys(user, address)
        now = self.clock()
        with self._lock:
            wait = max(self._wrong.get(key, (0, 0.0))[1] for key, _ in keys) - now
            if wait > 0:
                return wait
            for key, free in keys:
                count = self._wrong.get(key, (0, 0.0))[0] + 1
                self._wrong[key] = count, now + _seconds(count - free)
                self._wrong.move_to_end(key)
            while len(self._wrong) > MOST:
                self._wrong.popitem(last=False)
        return 0.0

    def right(self, user: str, address: str) -> None:
        """The last guess was right: clears the count of the user, and takes one guess from the address's."""
        (own, _), (whole, free) = _keys(user, address)
        with self._lock:
            self._wrong.pop(own, None)
            count = self._wrong.get(whole, (1, 0.0))[0] - 1
            if count > 0:
                self._wrong[whole] = count, self.clock() + _seconds(count - free)
            else:
                self._wrong.pop(whole, None)


def _keys(user: str, address: str) -> tuple[tuple[_Key, int], tuple[_Key, int]]:
    network = _network(address)
    return ((user, network), FREE), ((None, network), FREE_OF_ADDRESS)


def _network(address: str) -> str:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ipaddress.ip_network((ip, _NETWORK_BITS), strict=False))


def _seconds(over: int) -> float:
    """The wait after ``over`` guesses beyond the free ones."""
    return 0.0 if over < 0 else min(FIRST_SECONDS * 2 ** min(over, 10), LONGEST_SECONDS)
