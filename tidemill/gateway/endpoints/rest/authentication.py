"""Authenticates HTTP requests, and refuses requests from pages of other sites.

If a browser shows a page of another site, that page can make the browser send requests to the gateway. Such a
request names the other site in ``Origin``, and is refused. If the gateway has no users, a request must also
name this machine as its host: otherwise a site whose host name points at this machine could send requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.security.access import Access, AccessError, TooManyGuessesError, is_loopback


@dataclass(frozen=True, slots=True)
class Authentication:
    """``local``: the endpoint listens on this machine alone."""

    access: Access
    local: bool = False

    @property
    def asks(self) -> bool:
        """Whether authentication may take a while, because passwords are slow to check."""
        return self.access.users is not None

    def user(self, headers: Mapping[str, str], address: str = "") -> str:
        """The name of the user who sends a request from ``address``. HttpError 401, 403 or 429 if the request
        is refused."""
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
    """The parts of ``url``; without a host if ``url`` is not valid."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
