"""The SQL of Nexmark: its tables over generated events or over files, and its queries.

A query is the text of ``queries/<name>.sql``: a sink and an INSERT from the tables (or views) bid, auction
and person, whichever declaration made them. Flink runs the same text.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from tidemill.errors import ValidationError


def declaration() -> str:
    """The table ``nexmark`` of generated events and the views person, auction and bid on it."""
    return _folder().joinpath("nexmark.sql").read_text(encoding="utf-8")


def file_declaration(folder: str) -> str:
    """Tables person, auction and bid over ``folder``/{person,auction,bid}.csv."""
    text = _folder().joinpath("files.sql").read_text(encoding="utf-8")
    return text.replace("${FOLDER}", folder)


def names() -> tuple[str, ...]:
    """q0, q1 and so on, in their order."""
    found = (f.name.removesuffix(".sql") for f in _folder().joinpath("queries").iterdir())
    return tuple(sorted((n for n in found if n[1:].isdigit()), key=lambda n: int(n[1:])))


def query(name: str) -> str:
    """The script of one query. Raises ValidationError for a name that is none of ``names()``."""
    if name not in names():
        raise ValidationError(f"Nexmark has no query '{name}' here.", expected=names())
    return _folder().joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")


def select(name: str) -> str:
    """What the query inserts, alone and without the semicolon."""
    return query(name).split(f"INSERT INTO {name}\n")[1].strip().rstrip(";")


def _folder() -> Traversable:
    return files("tidemill.connectors.nexmark")
