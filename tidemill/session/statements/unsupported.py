"""Statements that are only refused."""

from __future__ import annotations

import os

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult
from tidemill.sql import statements as s


def unsupported(statement: s.Unsupported, context: SessionContext) -> TableResult:
    raise NotSupportedError(f"{statement.feature} is not supported", position=statement.position)


def jars(statement: s.AddJar | s.RemoveJar, context: SessionContext) -> TableResult:
    context.permissions.check_place(statement.jar, "ADD JAR", statement.position)
    if isinstance(statement, s.AddJar) and "://" not in statement.jar and not os.path.exists(statement.jar):
        raise ValidationError(
            f"jar or artifact resource [{statement.jar}] not found.", position=statement.position
        )
    raise NotSupportedError(
        "ADD JAR and REMOVE JAR are not supported",
        position=statement.position,
        hint="Connectors and functions are Python; jars for Spark go into 'spark.jars'.",
    )
