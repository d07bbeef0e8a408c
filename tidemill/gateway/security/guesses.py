"""Wrong logins are slowed down: who has guessed wrong a few times waits before the next guess is looked at.

What counts is the user's name with the address that the guess comes from, and, later, the address alone: so
nobody is kept out by what others try elsewhere. Each wrong guess doubles the wait, up to a minute. A right
guess ends it. Cost: an entry for each name and address that guessed wrong lately, ``MOST`` at the most.
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
"""How many wrong guesses are answered at once."""
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
_NETWORK_BITS = 64
"""Of an IPv6 address: the rest is its owner's to choose."""
_Key = tuple[str | None, str]


@dataclass(slots=True)
class Guesses:
    """Any thread may call. ``clock`` gives seconds that only grow."""

    clock: Callable[[], float] = time.monotonic
    _wrong: OrderedDict[_Key, tuple[int, float]] = field(default_factory=OrderedDict)
    """By whom: how many, and until when the next one waits."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, user: str, address: str) -> float:
        """Seconds to wait before a guess is looked at; 0: it is looked at now, and counts as wrong until
        ``right``. So of many guesses at once no more are looked at than of many in a row."""
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
        """The guess that was begun was right: no more is held against the user, and it is none of the
        address's."""
        (own, _), (whole, free) = _keys(user, address)
        with self._lock:
            self._wrong.pop(own, None)
            count = self._wrong.get(whole, (1, 0.0))[0] - 1
            if count > 0:
                self._wrong[whole] = count, self.clock() + _seconds(count - free)
            else:
                self._wrong.pop(whole, None)


def _keys(user: str, address: str) -> tuple[tuple[_Key, int], tuple[_Key, int]]:
    place = _network(address)
    return ((user, place), FREE), ((None, place), FREE_OF_ADDRESS)


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))


def _seconds(over: int) -> float:
    """How long to wait after ``over`` guesses more than are free."""
    return 0.0 if over < 0 else min(FIRST_SECONDS * 2 ** min(over, 10), LONGEST_SECONDS)
