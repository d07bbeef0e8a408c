"""Options of Flink that would change answers and that Tidemill knows only one value of.

Any other value is refused when a statement runs: to ignore it would be to answer another question.
"""

from __future__ import annotations

from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError

ONLY: dict[str, str] = {
    "table.sql-dialect": "default",
    "table.exec.legacy-cast-behaviour": "DISABLED",
    "table.exec.sort.default-limit": "-1",
    "table.dynamic-table-options.enabled": "true",
    "table.legacy-nested-row-nullability": "false",
}


def check_refused(configuration: Configuration) -> None:
    """NotSupportedError for the first option that is set to what Tidemill does not do."""
    for key, only in ONLY.items():
        value = configuration.get(key, only)
        if value.strip().lower() != only.lower():
            raise NotSupportedError(f"'{key}' = '{value}' is not supported", expected=(only,))
