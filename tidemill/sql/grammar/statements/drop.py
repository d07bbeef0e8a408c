"""DROP."""

from __future__ import annotations

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements.savepoints import drop_savepoint
from tidemill.sql.lexer import Token

_DROPS: dict[str, type[s.Drop]] = {
    "MATERIALIZED TABLE": s.DropMaterializedTable,
    "TABLE": s.DropTable,
    "VIEW": s.DropView,
    "CATALOG": s.DropCatalog,
    "DATABASE": s.DropDatabase,
    "MODEL": s.DropModel,
}
_OTHERS = [words for words in _DROPS if " " not in words]


def drop(cursor: Cursor, token: Token) -> s.Statement:
    """Behind DROP."""
    temporary = cursor.take("TEMPORARY")
    system = temporary and cursor.take("SYSTEM")
    if cursor.at("CONNECTION"):
        cursor.refuse("DROP CONNECTION")
    if not temporary and cursor.at("SAVEPOINT"):
        return drop_savepoint(cursor, token)
    if not temporary and cursor.take("MATERIALIZED"):
        cursor.expect("TABLE")
        word = "MATERIALIZED TABLE"
    else:
        word = cursor.expect_any(*_OTHERS, "FUNCTION")
    if_exists = cursor.take("IF", "EXISTS")
    path = cursor.names()
    cascade = word == "DATABASE" and cursor.take_any("RESTRICT", "CASCADE") == "CASCADE"
    text = cursor.text_since(token)
    if word == "FUNCTION":
        return s.DropFunction(
            path=path,
            if_exists=if_exists,
            temporary=temporary,
            system=system,
            text=text,
            position=token.position,
        )
    return _DROPS[word](
        path=path,
        if_exists=if_exists,
        temporary=temporary,
        cascade=cascade,
        text=text,
        position=token.position,
    )
