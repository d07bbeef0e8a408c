"""Text to bytes and back: HEX, BASE64, character sets, URL escapes."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.sharing import share
from tidemill.functions.signatures import (
    AS_BIGINT,
    BINARY,
    CHARACTER,
    fixed,
    kind_of,
    nullable,
    overloaded,
    signature,
)
from tidemill.functions.spark_text import quoted, template
from tidemill.types import logical as t

_TEXT = fixed(t.STRING)
_TEXT_OR_BYTES = kind_of("<STRING>", CHARACTER, BINARY)
_HEX_FORMS = "HEX(<INTEGER>)'\n'HEX(<CHARACTER>)"
_CHARSETS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
# Characters that a narrow set lacks become '?', as Java's encoders do; Spark's would fail.
_UNENCODABLE = {"US-ASCII": r"[^\x00-\x7F]", "ISO-8859-1": r"[^\x00-\xFF]"}


def _unhex(call: SparkCall) -> str:
    """NULL for text that is not hexadecimal; of an odd number of digits the first is read as 00."""
    return share(call.args[0], _unhex_of)


def _unhex_of(text: str) -> str:
    odd = f"concat('00', substring({text}, 2))"
    return (
        f"CASE WHEN length({text}) % 2 = 0 THEN unhex({text}) "
        f"WHEN {text} RLIKE '\\\\A[0-9a-fA-F]+\\\\z' THEN unhex({odd}) END"
    )


def _from_base64(call: SparkCall) -> str:
    """The text whose UTF-8 the base64 text is; anything but base64 is an error."""
    return share(call.args[0], _from_base64_of)


def _from_base64_of(text: str) -> str:
    valid = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?\z"
    error = f"raise_error(concat('Illegal base64 text: ', {text}))"
    decoded = f"make_valid_utf8(CAST(unbase64({text}) AS STRING))"
    return f"CASE WHEN {text} RLIKE {quoted(valid)} THEN {decoded} WHEN {text} IS NOT NULL THEN {error} END"


def _charset(call: SparkCall) -> str:
    """The literal character set in upper case, '' where it is not a literal."""
    name = call.literals[1]
    return name.upper() if isinstance(name, str) else ""


def _encode(call: SparkCall) -> str:
    text, charset = call.args
    name = _charset(call)
    if name in _UNENCODABLE:
        text = f"regexp_replace({text}, {quoted(_UNENCODABLE[name])}, '?')"
    return f"encode({text}, {quoted(name) if name else f'upper({charset})'})"


def _decode(call: SparkCall) -> str:
    """Bytes that are no text become U+FFFD."""
    data, charset = call.args
    name = _charset(call)
    if name == "UTF-8":
        return f"make_valid_utf8(CAST({data} AS STRING))"
    return f"decode({data}, {quoted(name) if name else f'upper({charset})'})"


def _resolve_charset(name: str) -> ScalarFunction:
    encodes = name == "ENCODE"
    base = signature(
        name, CHARACTER if encodes else BINARY, CHARACTER, result=fixed(t.BYTES if encodes else t.STRING)
    )

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        resolved = base(arguments, options)
        charset = arguments[1].literal
        if isinstance(charset, str) and charset.upper() not in _CHARSETS:
            raise SignatureError(f"{name}: unknown character set '{charset}'. Known: {', '.join(_CHARSETS)}")
        return resolved

    return ScalarFunction(name=name, resolve=resolve, spark=_encode if encodes else _decode)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="HEX",
        resolve=overloaded(
            signature("HEX", AS_BIGINT, result=_TEXT),
            signature("HEX", CHARACTER, result=_TEXT, forms=_HEX_FORMS),
        ),
        spark=template("hex({0})"),
    ),
    ScalarFunction(
        name="UNHEX", resolve=signature("UNHEX", CHARACTER, result=nullable(fixed(t.BYTES))), spark=_unhex
    ),
    ScalarFunction(
        name="TO_BASE64",
        resolve=signature("TO_BASE64", _TEXT_OR_BYTES, result=_TEXT),
        spark=template("base64(CAST({0} AS BINARY))"),
    ),
    ScalarFunction(
        name="FROM_BASE64", resolve=signature("FROM_BASE64", _TEXT_OR_BYTES, result=_TEXT), spark=_from_base64
    ),
    _resolve_charset("ENCODE"),
    _resolve_charset("DECODE"),
    ScalarFunction(
        name="URL_ENCODE",
        resolve=signature("URL_ENCODE", CHARACTER, result=nullable(_TEXT)),
        spark=template("url_encode({0})"),
    ),
    ScalarFunction(
        name="URL_DECODE",
        resolve=signature("URL_DECODE", CHARACTER, result=nullable(_TEXT)),
        spark=template("try_url_decode({0})"),
    ),
)
