"""Flink's functions that Tidemill knows by name and refuses: bitmaps, VARIANT and OBJECT values, models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, ScalarFunction, SparkCall
from tidemill.functions.spark_text import template

_BITMAPS = (
    *("BITMAP_AND", "BITMAP_ANDNOT", "BITMAP_BUILD", "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES", "BITMAP_OR"),
    *("BITMAP_TO_ARRAY", "BITMAP_TO_BYTES", "BITMAP_TO_STRING", "BITMAP_XOR"),
)
_VARIANTS = ("PARSE_JSON", "TRY_PARSE_JSON", "OBJECT_OF", "OBJECT_UPDATE")
_OTHERS = ("FLATTEN", "ML_PREDICT", "SOURCE_WATERMARK")
_HINTS = {
    "SOURCE_WATERMARK": "No connector gives watermarks: declare one, as in WATERMARK FOR ts AS ts - INTERVAL "
    "'5' SECOND.",
}


def _refusal(name: str) -> ScalarFunction:
    def refuse() -> NoReturn:
        raise NotSupportedError(f"The function {name} is not supported", hint=_HINTS.get(name, ""))

    def resolve(_: tuple[Argument, ...], __: Mapping[str, str]) -> NoReturn:
        refuse()

    def translate(_: SparkCall) -> NoReturn:
        refuse()

    return ScalarFunction(name=name, resolve=resolve, spark=translate)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(_refusal(name) for name in (*_BITMAPS, *_VARIANTS, *_OTHERS)),
    # Plans call it, which cut values into buckets by it; its numbers are not Flink's.
    replace(_refusal("HASH_CODE"), spark=template("hash({0})")),
)
