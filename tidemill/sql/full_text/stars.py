"""Expands the stars of a query into their current columns, and keeps the rest of its text.

``SELECT *, a + 1 AS b FROM t`` of a table of (a, c): ``SELECT `t`.`a`, `t`.`c`, a + 1 AS b FROM t``.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from tidemill.sql.full_text.names import FullNames, Name, Unprintable, quoted
from tidemill.sql.lexer import Token, tokens
from tidemill.sql.positions import position_of


def without_stars(text: str, tree: exp.Expr, names: FullNames) -> str:
    """``tree``: parsed from ``text``. Unprintable if a star has columns without names."""
    written = list(tokens(text))
    stars = [(*_place(star, written), _columns(star, names)) for star in _stars(tree)]
    for start, end, columns in sorted(stars, reverse=True):
        text = f"{text[:start]}{columns}{text[end:]}"
    return text


def _stars(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The select items that are stars, but those of VALUES, whose columns are in the text."""
    for select in tree.find_all(exp.Select):
        source = select.args.get("from_")
        if source is None or not isinstance(source.this, exp.Values) or select.args.get("joins"):
            yield from filter(is_star, select.expressions)


def is_star(node: exp.Expr) -> bool:
    """``*`` or ``t.*``."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _place(star: exp.Expr, written: list[Token]) -> tuple[int, int]:
    """Where the star's text starts and ends."""
    position = position_of(star)
    first = next((i for i, token in enumerate(written) if token.position == position), len(written))
    last = next((token for token in written[first:] if token.upper == "*"), None)
    if last is None:
        raise Unprintable("*")
    return written[first].start, last.end


def _columns(star: exp.Expr, names: FullNames) -> str:
    columns = names.stars.get(id(star))
    if columns is None:
        raise Unprintable("*")
    made_up = set(names.relations.values())
    return ", ".join(
        _column(name[1:] if name[0] in made_up else name, output_name) for name, output_name in columns
    )


def _column(name: Name, output_name: str) -> str:
    return quoted(*name) if name[-1] == output_name else f"{quoted(*name)} AS {quoted(output_name)}"
