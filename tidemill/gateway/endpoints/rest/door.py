"""Who comes in by HTTP: users as they say they are, and no page of another site.

A browser that shows another site's page sends requests here as that page tells it: those say so in
``Origin``, and are refused. Where nobody has to say who he is, a request must also name this machine as its
host, or a name that somebody has pointed at it would do for a site of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.security.access import Access, AccessError, TooManyGuessesError, is_loopback


@dataclass(frozen=True, slots=True)
class Door:
    """``local``: the endpoint listens on this machine alone."""

    access: Access
    local: bool = False

    @property
    def asks(self) -> bool:
        """Whether to know a user may take a while: passwords are slow to check."""
        return self.access.users is not None

    def user(self, headers: Mapping[str, str], address: str = "") -> str:
        """The name of who asks from ``address``; HttpError 401, 403 or 429 where he may not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            raise HttpError(403, "The request comes from a page of another site.")
        if self.local and self.access.users is None and not is_loopback(_split(f"//{host}").hostname or ""):
            raise HttpError(403, f"The gateway is not '{host[:200]}': it listens on this machine alone.")
        try:
            return self.access.user(headers.get("authorization", ""), address)
        except TooManyGuessesError as e:
            refused = HttpError(429, str(e))
            refused.headers["Retry-After"] = str(math.ceil(e.seconds))
            raise refused from e
        except AccessError as e:
            raise HttpError(401, str(e)) from e


def _split(url: str) -> SplitResult:
    """One without a host where it is none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
