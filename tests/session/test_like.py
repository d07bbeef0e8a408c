"""Patterns of names: what matches, and that a match takes no time that grows with each wildcard."""

from __future__ import annotations

import random
import re

from tests.session.environments import ask, new_session
from tidemill.session.statements.like import ANY, expression


def test_a_pattern_matches_what_all_places_would() -> None:
    chance = random.Random(5)
    for _ in range(3000):
        parts = [chance.choice(("a", "b", ".", ANY, ANY)) for _ in range(chance.randrange(8))]
        name = "".join(chance.choice("ab") for _ in range(chance.randrange(9)))
        every = re.fullmatch("".join(parts), name, re.DOTALL)
        assert (re.fullmatch(expression(parts), name, re.DOTALL) is None) is (every is None), (parts, name)


def test_many_wildcards_take_no_longer() -> None:
    """Where each is tried at all places, this does not end."""
    session, name = new_session(), "a" * 300
    ask(session, f"CREATE TABLE {name}b (x INT) WITH ('connector'='datagen')")
    assert ask(session, f"SHOW TABLES LIKE '{'%a' * 100}c%d'") == []
    assert ask(session, f"SHOW TABLES LIKE '{'%a' * 100}%b'") == [(f"{name}b",)]
