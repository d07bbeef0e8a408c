"""Digests of functions' code: they change with the code and with nothing else."""

from __future__ import annotations

from tidemill.user_functions.code import code_digest, same_code


class Adds:
    def eval(self, x: int) -> int:
        return x + 1


class AddsTwo:
    def eval(self, x: int) -> int:
        return x + 2


def test_a_digest_changes_with_the_code() -> None:
    def once(x: int) -> int:
        return (lambda y: y + 1)(x)

    def again(x: int) -> int:
        return (lambda y: y + 1)(x)

    def other(x: int) -> int:
        return (lambda y: y - 1)(x)

    assert code_digest(once) == code_digest(again) != code_digest(other)
    assert code_digest(Adds()) == code_digest(Adds()) != code_digest(AddsTwo())
    assert code_digest(Adds().eval) == code_digest(Adds.eval) != code_digest(AddsTwo().eval)
    assert code_digest(len) == ""


def test_other_compilers_say_nothing() -> None:
    assert same_code("3.11:a", "3.12:b")
    assert not same_code("3.12:a", "3.12:b")
