"""Three-valued logic: AND, OR, NOT and the IS tests, which Spark shares with Flink."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.functions.api import ScalarFunction, SparkCall
from tidemill.functions.signatures import ANY, BOOLEAN, fixed, not_null, signature, with_aliases
from tidemill.types import logical as t

_TRUTH = fixed(t.BOOLEAN)


def _joined(word: str) -> Callable[[SparkCall], str]:
    return lambda call: "(" + f" {word} ".join(call.args) + ")"


def _suffix(words: str) -> Callable[[SparkCall], str]:
    return lambda call: f"({call.args[0]} {words})"


def _connective(word: str) -> ScalarFunction:
    resolve = signature(
        word, BOOLEAN, BOOLEAN, result=_TRUTH, variadic=True, forms=f"<BOOLEAN> {word} <BOOLEAN>"
    )
    return ScalarFunction(name=word, resolve=resolve, spark=_joined(word))


def _test(words: str) -> ScalarFunction:
    resolve = signature(words, BOOLEAN, result=not_null(_TRUTH), forms=f"<BOOLEAN> {words}")
    return ScalarFunction(name=words, resolve=resolve, spark=_suffix(words))


def _null_test(words: str, alias: str) -> tuple[ScalarFunction, ...]:
    resolve = signature(words, ANY, result=not_null(_TRUTH))
    return with_aliases(ScalarFunction(name=words, resolve=resolve, spark=_suffix(words)), alias)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    _connective("AND"),
    _connective("OR"),
    ScalarFunction(
        name="NOT",
        resolve=signature("NOT", BOOLEAN, result=_TRUTH, forms="NOT<BOOLEAN>"),
        spark=lambda call: f"(NOT {call.args[0]})",
    ),
    *(_test(words) for words in ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE")),
    *_null_test("IS NULL", "IS UNKNOWN"),
    *_null_test("IS NOT NULL", "IS NOT UNKNOWN"),
)
