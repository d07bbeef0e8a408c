"""``tidemill sql``."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.errors import NotSupportedError


def run_shell(options: Mapping[str, str], variables: Mapping[str, str], init: str | None) -> int:
    raise NotSupportedError("tidemill sql is not supported")
