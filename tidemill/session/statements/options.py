"""SET and RESET."""

from __future__ import annotations

from tidemill.config.secrets import shown_value
from tidemill.session.context import SessionContext
from tidemill.session.result import StatementKind, TableResult, listing, ok
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field

_COLUMNS = (Field("key", STRING), Field("value", STRING))


def set_option(statement: s.SetOption, context: SessionContext) -> TableResult:
    """SET 'key' = 'value' keeps the text; a bare SET lists what is set, sorted by key, secrets masked."""
    if not statement.key:
        options = sorted(context.configuration.items())
        return listing(_COLUMNS, [(k, shown_value(k, v)) for k, v in options], StatementKind.SET)
    context.set_option(statement.key, statement.value)
    return ok(StatementKind.SET)


def reset_option(statement: s.ResetOption, context: SessionContext) -> TableResult:
    """Back to what the session started with."""
    key, defaults = statement.key, context.defaults
    if not key:
        context.configuration = defaults
    elif key in defaults:
        context.configuration = context.configuration.with_value(key, defaults[key])
    else:
        context.configuration = context.configuration.without(key)
    return ok(StatementKind.RESET)
