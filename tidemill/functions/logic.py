"""Three-valued logic: AND, OR, NOT and the IS tests, which Spark shares with Flink."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.functions.api import ScalarFunction, SparkCall
from tidemill.functions.arrays import logic
from tidemill.functions.arrays.api import Kernel, by_value
from tidemill.functions.signatures import ANY, BOOLEAN, fixed, not_null, signature, with_aliases
from tidemill.types import logical as t

_TRUTH = fixed(t.BOOLEAN)


def _joined(word: str) -> Callable[[SparkCall], str]:
    return lambda call: "(" + f" {word} ".join(call.args) + ")"


def _suffix(words: str) -> Callable[[SparkCall], str]:
    return lambda call: f"({call.args[0]} {words})"


def _connective(word: str, kernel: Kernel) -> ScalarFunction:
    resolve = signature(
        word, BOOLEAN, BOOLEAN, result=_TRUTH, variadic=True, forms=f"<BOOLEAN> {word} <BOOLEAN>"
    )
    return ScalarFunction(name=word, resolve=resolve, spark=_joined(word), arrays=by_value(kernel))


def _test(words: str, kernel: Kernel) -> ScalarFunction:
    resolve = signature(words, BOOLEAN, result=not_null(_TRUTH), forms=f"<BOOLEAN> {words}")
    return ScalarFunction(name=words, resolve=resolve, spark=_suffix(words), arrays=by_value(kernel))


def _null_test(words: str, alias: str, kernel: Kernel) -> tuple[ScalarFunction, ...]:
    resolve = signature(words, ANY, result=not_null(_TRUTH))
    function = ScalarFunction(name=words, resolve=resolve, spark=_suffix(words), arrays=by_value(kernel))
    return with_aliases(function, alias)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    _connective("AND", logic.conjunction),
    _connective("OR", logic.disjunction),
    ScalarFunction(
        name="NOT",
        resolve=signature("NOT", BOOLEAN, result=_TRUTH, forms="NOT<BOOLEAN>"),
        spark=lambda call: f"(NOT {call.args[0]})",
        arrays=by_value(logic.negation),
    ),
    _test("IS TRUE", logic.is_true),
    _test("IS NOT TRUE", logic.is_not_true),
    _test("IS FALSE", logic.is_false),
    _test("IS NOT FALSE", logic.is_not_false),
    *_null_test("IS NULL", "IS UNKNOWN", logic.is_null),
    *_null_test("IS NOT NULL", "IS NOT UNKNOWN", logic.is_not_null),
)
