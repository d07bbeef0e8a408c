"""Hashes as lower-case hexadecimal text. Text is hashed as UTF-8."""

from __future__ import annotations

from tidemill.functions.api import ScalarFunction, SparkCall
from tidemill.functions.signatures import AS_INT, BINARY, CHARACTER, fixed, kind_of, signature
from tidemill.functions.spark_text import template
from tidemill.types import logical as t

_TEXT_OR_BYTES = kind_of("<STRING>", CHARACTER, BINARY)
_BITS = (224, 256, 384, 512)


def _hash(name: str, spark: str, length: int) -> ScalarFunction:
    resolve = signature(name, _TEXT_OR_BYTES, result=fixed(t.CharType(length=length)))
    return ScalarFunction(name=name, resolve=resolve, spark=template(spark))


def _sha2(call: SparkCall) -> str:
    """SHA2(text, bits); 0 is not 256 here, unlike in Spark."""
    text, bits = call.args
    if call.literals[1] in _BITS:
        return f"sha2({text}, {bits})"
    is_supported = f"{bits} IN ({', '.join(map(str, _BITS))}) OR {bits} IS NULL"
    return (
        f"CASE WHEN {is_supported} THEN sha2({text}, {bits}) ELSE raise_error('Unsupported algorithm.') END"
    )


FUNCTIONS: tuple[ScalarFunction, ...] = (
    _hash("MD5", "md5({0})", 32),
    _hash("SHA1", "sha1({0})", 40),
    *(_hash(f"SHA{bits}", f"sha2({{0}}, {bits})", bits // 4) for bits in _BITS),
    ScalarFunction(
        name="SHA2",
        resolve=signature("SHA2", _TEXT_OR_BYTES, AS_INT, result=fixed(t.VarCharType(length=128))),
        spark=_sha2,
    ),
)
