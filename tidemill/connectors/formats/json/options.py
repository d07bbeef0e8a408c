"""Options that JSON formats share, and their check."""

from __future__ import annotations

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError

TIMESTAMP_STANDARDS = ("SQL", "ISO-8601")

IGNORE_ERRORS = ConnectorOption(
    key="ignore-parse-errors",
    kind="bool",
    default="false",
    doc="NULL for fields that do not parse; skips records that are no JSON.",
)
TIMESTAMP_FORMAT = ConnectorOption(
    key="timestamp-format.standard",
    default="SQL",
    doc="SQL: 2020-12-30 12:13:14.123; ISO-8601: 2020-12-30T12:13:14.123.",
)
NULL_KEY_MODE = ConnectorOption(
    key="map-null-key.mode", default="FAIL", doc="NULL keys of a MAP when writing: FAIL, DROP or LITERAL."
)
NULL_KEY_LITERAL = ConnectorOption(
    key="map-null-key.literal", default="null", doc="Text that LITERAL writes for a NULL key."
)
PLAIN_NUMBERS = ConnectorOption(
    key="encode.decimal-as-plain-number",
    kind="bool",
    default="false",
    doc="Write DECIMAL without an exponent.",
)
IGNORE_NULLS = ConnectorOption(
    key="encode.ignore-null-fields", kind="bool", default="false", doc="Leave NULL fields out when writing."
)
SHARED = (IGNORE_ERRORS, TIMESTAMP_FORMAT, NULL_KEY_MODE, NULL_KEY_LITERAL, PLAIN_NUMBERS, IGNORE_NULLS)

JSON_OPTIONS = (
    ConnectorOption(
        key="fail-on-missing-field", kind="bool", default="false", doc="Fail when a field is missing."
    ),
    ConnectorOption(
        key="decode.json-parser.enabled", kind="bool", default="true", doc="Accepted; there is one parser."
    ),
    *SHARED,
)


def check_choices(identifier: str, options: OptionValues) -> None:
    """ValidationError for a timestamp standard or a null key mode that does not exist."""
    standard = options["timestamp-format.standard"]
    if standard not in TIMESTAMP_STANDARDS:
        raise ValidationError(
            f"Unsupported value '{standard}' for timestamp-format.standard."
            f" Supported values are [{', '.join(TIMESTAMP_STANDARDS)}]."
        )
    mode = options["map-null-key.mode"]
    if mode.upper() not in ("FAIL", "DROP", "LITERAL"):
        raise ValidationError(
            f"Unsupported value '{mode}' for option {identifier}.map-null-key.mode."
            " Supported values are [LITERAL, FAIL, DROP]."
        )
