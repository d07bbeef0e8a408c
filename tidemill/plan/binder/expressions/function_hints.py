"""Hints for unknown functions: the Flink SQL equivalent of a function of another database, or the nearest
name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_CLOSE = 0.8
_WINDOW_FUNCTIONS = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD")

ELSEWHERE: dict[str, str] = {
    "ADD_MONTHS": "d + INTERVAL '1' MONTH",
    "ANY_VALUE": "FIRST_VALUE(x)",
    "APPROX_DISTINCT": "COUNT(DISTINCT x)",
    "ARRAY_LENGTH": "CARDINALITY(a)",
    "ARRAY_SIZE": "CARDINALITY(a)",
    "BOOL_AND": "MIN(CASE WHEN b THEN 1 ELSE 0 END) = 1",
    "BOOL_OR": "MAX(CASE WHEN b THEN 1 ELSE 0 END) = 1",
    "CHARINDEX": "LOCATE(part, text)",
    "COLLECT_LIST": "ARRAY_AGG(x)",
    "CONVERT": "CAST(x AS type)",
    "COUNTIF": "COUNT(*) FILTER (WHERE condition)",
    "COUNT_IF": "COUNT(*) FILTER (WHERE condition)",
    "DATEADD": "TIMESTAMPADD(DAY, n, d)",
    "DATEDIFF": "TIMESTAMPDIFF(DAY, a, b)",
    "DATEPART": "EXTRACT(unit FROM d)",
    "DATE_ADD": "TIMESTAMPADD(DAY, n, d)",
    "DATE_DIFF": "TIMESTAMPDIFF(DAY, a, b)",
    "DATE_PART": "EXTRACT(unit FROM d)",
    "DATE_SUB": "TIMESTAMPADD(DAY, -n, d)",
    "DATE_TRUNC": "FLOOR(t TO unit)",
    "EXPLODE": "CROSS JOIN UNNEST(a)",
    "FIRST": "FIRST_VALUE(x)",
    "GETDATE": "LOCALTIMESTAMP",
    "GET_JSON_OBJECT": "JSON_VALUE(text, path)",
    "GROUP_CONCAT": "LISTAGG(x, separator)",
    "IIF": "IF(condition, a, b)",
    "INT": "CAST(x AS INT)",
    "ISNULL": "x IS NULL, or COALESCE(x, other)",
    "JSON_EXTRACT": "JSON_VALUE(text, path), or JSON_QUERY for objects and arrays",
    "JSON_EXTRACT_SCALAR": "JSON_VALUE(text, path)",
    "LAST": "LAST_VALUE(x)",
    "LCASE": "LOWER(text)",
    "LEN": "CHAR_LENGTH(text)",
    "LENGTH": "CHAR_LENGTH(text)",
    "MEAN": "AVG(x)",
    "MEDIAN": "PERCENTILE(x, 0.5)",
    "NVL": "COALESCE(x, other)",
    "NVL2": "CASE WHEN x IS NOT NULL THEN a ELSE b END",
    "POSEXPLODE": "CROSS JOIN UNNEST(a) WITH ORDINALITY",
    "POW": "POWER(x, y)",
    "RANDOM": "RAND()",
    "REGEXP_LIKE": "REGEXP(text, pattern)",
    "REGEXP_MATCHES": "REGEXP(text, pattern)",
    "REPLICATE": "REPEAT(text, n)",
    "RLIKE": "REGEXP(text, pattern)",
    "SAFE_CAST": "TRY_CAST(x AS type)",
    "SIZE": "CARDINALITY(a)",
    "SPLIT_PART": "SPLIT_INDEX(text, separator, n), which counts from 0",
    "STRFTIME": "DATE_FORMAT(t, format)",
    "STRING_AGG": "LISTAGG(x, separator)",
    "STRPOS": "LOCATE(part, text)",
    "SYSDATE": "LOCALTIMESTAMP",
    "TO_CHAR": "DATE_FORMAT(t, format), or CAST(x AS STRING)",
    "TO_JSON": "JSON_STRING(x)",
    "TO_NUMBER": "CAST(text AS DECIMAL(p, s))",
    "TRUNC": "TRUNCATE(x, n), or FLOOR(t TO unit)",
    "UCASE": "UPPER(text)",
    "UNIXTIME": "UNIX_TIMESTAMP()",
}
"""Functions of other dialects, and Flink SQL's own words for them."""


def function_hint(name: str, function_names: Iterable[str]) -> str:
    """A hint for the unknown function ``name``; '' if none of ``function_names`` is close."""
    name = name.upper()
    if name in ELSEWHERE:
        return f"In Flink SQL: {ELSEWHERE[name]}."
    words = [*filter(_NAME.fullmatch, function_names), *_WINDOW_FUNCTIONS]
    close = get_close_matches(name, words, n=1, cutoff=_CLOSE)
    return f"Did you mean '{close[0]}'?" if close else ""
