"""What a statement can ask of its session: the binder knows the answer."""

from __future__ import annotations

from typing import NoReturn

from tidemill.errors import InternalError
from tidemill.functions.api import ScalarFunction, SparkCall
from tidemill.functions.signatures import fixed, not_null, signature
from tidemill.types import logical as t

CURRENT_DATABASE = "CURRENT_DATABASE"


def _bound(_: SparkCall) -> NoReturn:
    raise InternalError(f"{CURRENT_DATABASE} is a literal once it is bound")


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name=CURRENT_DATABASE,
        resolve=signature(CURRENT_DATABASE, result=not_null(fixed(t.STRING))),
        spark=_bound,
    ),
)
