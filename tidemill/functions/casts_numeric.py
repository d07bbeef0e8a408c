"""CAST to BOOLEAN and to numbers.

Integers wrap on narrowing, floating numbers saturate (to SMALLINT and TINYINT by way of INT, as the
JVM does), decimals round half up and are NULL on overflow; text that is no number, and NaN and infinities
as decimals, fail or, for TRY_CAST, give NULL. Spark without ANSI mode has the same numeric rules, so only
those are guarded.
"""

from __future__ import annotations

from tidemill.functions.cast_step import CastStep, attempt
from tidemill.functions.sharing import share
from tidemill.types.physical import spark_type

_INTEGER_TEXT = "'^ *[+-]?(?=[0-9.])[0-9]*[.]?[0-9]* *$'"
_SPECIAL_TEXT = "'(?i)(inf|nan)'"
_FLOAT_TEXT = "'^[+-]?(NaN|Infinity)$'"
_NO_NUMBER = "raise_error('Infinite or NaN')"
_TRUE_TEXT = "('t', 'true', 'y', 'yes', '1')"
_FALSE_TEXT = "('f', 'false', 'n', 'no', '0')"


def plain(step: CastStep) -> str:
    """Where Spark's cast is Flink's."""
    return f"CAST({step.sql} AS {spark_type(step.target)})"


def number_to_boolean(step: CastStep) -> str:
    return f"({step.sql} <> 0)"


def boolean_to_decimal(step: CastStep) -> str:
    return f"CAST(CAST({step.sql} AS INT) AS {spark_type(step.target)})"


def float_to_decimal(step: CastStep) -> str:
    """A DOUBLE is what its shortest text says; a FLOAT its binary value, as it is as a DOUBLE.

    What is no number fails; what has too many digits is NULL.
    """

    def body(sql: str) -> str:
        double = f"CAST({sql} AS DOUBLE)"
        value = f"CAST({double} AS {spark_type(step.target)})"
        unbound = f"isnan({double}) OR abs({double}) = DOUBLE('Infinity')"
        return value if step.safe else f"coalesce({value}, CASE WHEN {unbound} THEN {_NO_NUMBER} END)"

    return share(step.sql, body)


def text_to_integer(step: CastStep) -> str:
    def body(sql: str) -> str:
        value = f"IF({sql} RLIKE {_INTEGER_TEXT}, CAST({sql} AS {spark_type(step.target)}), NULL)"
        reason = (
            f"CASE WHEN TRIM({sql}) = '' THEN 'Input is empty.' "
            f"WHEN {sql} RLIKE {_INTEGER_TEXT} THEN 'Overflow.' ELSE 'Invalid character found.' END"
        )
        return attempt(step, value, sql, f"concat('For input string: \\'', TRIM({sql}), '\\'. ', {reason})")

    return share(step.sql, body)


def text_to_float(step: CastStep) -> str:
    def body(sql: str) -> str:
        cast = f"CAST({sql} AS {spark_type(step.target)})"
        is_number = f"NOT {sql} RLIKE {_SPECIAL_TEXT} OR TRIM({sql}) RLIKE {_FLOAT_TEXT}"
        message = f"IF(TRIM({sql}) = '', 'empty String', concat('For input string: \"', TRIM({sql}), '\"'))"
        return attempt(step, f"IF({is_number}, {cast}, NULL)", sql, message)

    return share(step.sql, body)


def text_to_decimal(step: CastStep) -> str:
    def body(sql: str) -> str:
        reason = f"IF(CAST({sql} AS DOUBLE) IS NULL, 'Invalid character found.', 'Overflow.')"
        message = f"concat('For input string: \\'', TRIM({sql}), '\\'. ', {reason})"
        return attempt(step, plain(step), sql, message)

    return share(step.sql, body)


def text_to_boolean(step: CastStep) -> str:
    def body(sql: str) -> str:
        low = f"lower({sql})"
        value = f"CASE WHEN {low} IN {_TRUE_TEXT} THEN TRUE WHEN {low} IN {_FALSE_TEXT} THEN FALSE END"
        return attempt(step, value, sql, f"concat('Cannot parse \\'', {sql}, '\\' as BOOLEAN.')")

    return share(step.sql, body)
