"""Options of Flink that change results, and of which Tidemill supports only one value.

Statements refuse any other value, because ignoring it would give wrong results.
"""

from __future__ import annotations

from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, ValidationError

ONLY: dict[str, str] = {
    "table.sql-dialect": "default",
    "table.exec.legacy-cast-behaviour": "DISABLED",
    "table.exec.sort.default-limit": "-1",
    "table.dynamic-table-options.enabled": "true",
    "table.legacy-nested-row-nullability": "false",
}


_DIALECT, _DIALECTS = "table.sql-dialect", ("default", "hive")
_HIVE = (
    "Statements are Flink SQL, whichever client sends them, Hive's JDBC driver included. "
    "RESET 'table.sql-dialect' goes back."
)


def check_dialect(key: str, value: str) -> None:
    """ValidationError at SET for a dialect that Flink does not have either."""
    if key == _DIALECT and value.strip().lower() not in _DIALECTS:
        raise ValidationError(
            f"No enum constant org.apache.flink.table.api.SqlDialect.{value.upper()}",
            expected=(ONLY[_DIALECT],),
        )


def check_refused(configuration: Configuration) -> None:
    """NotSupportedError for the first option with an unsupported value."""
    for key, only in ONLY.items():
        value = configuration.get(key, only)
        if value.strip().lower() != only.lower():
            hint = _HIVE if key == _DIALECT else ""
            raise NotSupportedError(f"'{key}' = '{value}' is not supported", expected=(only,), hint=hint)
