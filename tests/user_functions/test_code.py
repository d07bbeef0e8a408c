"""Digests of functions' code: they change with the code and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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
    assert code_digest(Adds().eval) == code_digest(Adds().eval) != code_digest(AddsTwo().eval)
    assert code_digest(len) == ""


def test_other_compilers_say_nothing() -> None:
    assert same_code("3.11:a", "3.12:b")
    assert not same_code("3.12:a", "3.12:b")


MODULE = """
import functools, decimal, textwrap
from tidemill import udf

RATE, NAMES, TABLE, CALLS = 2, {"a", "b"}, {"x": [1, 2]}, 0
WORDS = {"wrap": textwrap.wrap}
LIMIT = decimal.Decimal("1.5")

def helper(x):
    return deeper(x) + 1

def deeper(x):
    return x * RATE if x not in {"q", "r", "s"} else deeper(x)

class Kind:
    factor = 3
    def of(self, x):
        return x * self.factor + tail()

def tail():
    return 8

class Counted:
    def __init__(self, step):
        self.step = step
    def eval(self, x):
        return x + self.step

def logged(f):
    @functools.wraps(f)
    def call(*args):
        return f(*args)
    return call

def made(n):
    return lambda x: x + n

LOOP = [1, {2}]
LOOP.append(LOOP)
MANY = list(range(20_000))

def plain(x): return helper(x)
def by_default(x, step=1, *, last=2): return x + step + last
def by_class(x): return Kind().of(x)
def by_table(x): return TABLE[x][0] + len(NAMES)
def by_loop(x): return LOOP[0] + MANY[x] + len(textwrap.wrap("x")) + len(WORDS)
def by_decimal(x): return x + LIMIT
@logged
def wrapped(x): return x + 1
@functools.cache
def cached(x): return x + 1
closed = made(5)
part = functools.partial(by_default, step=4)
counted = Counted(6)
method = counted.eval
declared = udf(lambda x: x + 1, result_type="BIGINT")
def by_declared(x): return declared(x)
"""
CHANGES = {
    "plain": [
        ("deeper(x) + 1", "deeper(x) + 2"),
        ("x * RATE", "x / RATE"),
        ("CALLS = 2", "CALLS = 3"),
        ('"s"}', '"t"}'),
    ],
    "by_default": [("step=1", "step=7"), ("last=2", "last=3")],
    "by_class": [("return 8", "return 9"), ("factor = 3", "factor = 4"), ("x * self", "x / self")],
    "by_table": [("[1, 2]", "[2, 2]"), ('"b"}, ', '"c"}, ')],
    "by_loop": [("LOOP = [1", "LOOP = [2"), ("{2}", "{3}"), ("range(20_000)", "range(20_001)")],
    "by_decimal": [("1.5", "1.6")],
    "wrapped": [("wrapped(x): return x + 1", "wrapped(x): return x + 2")],
    "cached": [("cached(x): return x + 1", "cached(x): return x + 2")],
    "closed": [("made(5)", "made(6)"), ("x + n", "x - n")],
    "part": [("step=4", "step=5"), ("x + step", "x - step")],
    "counted": [("Counted(6)", "Counted(7)"), ("x + self.step", "x - self.step")],
    "method": [("Counted(6)", "Counted(7)"), ("x + self.step", "x - self.step")],
    "by_declared": [("x + 1, result", "x + 2, result")],
}


def module(text: str) -> ModuleType:
    made = ModuleType("functions")
    exec(compile(text, "functions.py", "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_function_is_made_of_counts(name: str) -> None:
    def digest(text: str) -> str:
        body: Callable[..., Any] = getattr(module(text), name)
        return code_digest(body)

    before = digest(MODULE)
    assert before
    assert digest(f"# Another comment.\n{MODULE}") == before
    assert digest(MODULE.replace(", 0\n", ", 77\n")) == before, "a global that it does not use"
    for then, now in CHANGES[name]:
        assert MODULE.count(then) == 1
        assert digest(MODULE.replace(then, now)) != before, then


def test_a_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets have another order in each process."""
    (tmp_path / "functions.py").write_text(MODULE)
    script = (
        "import functions\nfrom tidemill.user_functions.code import code_digest\n"
        f"print([code_digest(getattr(functions, name)) for name in {list(CHANGES)}])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
