"""Each kind of statement has a handler, which is loaded by its name."""

from __future__ import annotations

import inspect

import pytest

from tidemill.session.dispatch import HANDLERS, handler
from tidemill.sql import statements as s


@pytest.mark.parametrize("kind", HANDLERS, ids=lambda kind: kind.__name__)
def test_handlers_are_there(kind: type[s.Statement]) -> None:
    assert [*inspect.signature(handler(kind)).parameters] == ["statement", "context"]
