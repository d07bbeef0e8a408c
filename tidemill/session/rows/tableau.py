"""Results as text, in Flink's tableau style: right-aligned cells, an ``op`` column for changelogs.

A changelog prints as it comes, so its column widths follow the types; a finished result's widths
follow the contents of its first rows, and grow where a later row needs more: however many rows there are, few
are in memory. Wide (East Asian) characters count as two. Characters that would move the cursor, a line
break or a terminal's escape, are spelled out: a value tears no table and commands no terminal.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import singledispatch
from itertools import chain, islice

from tidemill.functions.text.cast import cast
from tidemill.functions.text.style import Write
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.types import logical as t

NULL = "<NULL>"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_OP = "op"
SAMPLE = 1000
"""Rows of a finished result that are read before its first line."""
Show = Callable[[t.LogicalType, dt.tzinfo], Write]
"""How values of a type are written in a time zone."""


def stream_lines(
    fields: Sequence[t.Field],
    rows: Iterable[ChangelogRow],
    *,
    max_width: int,
    zone: dt.tzinfo,
    show: Show = cast,
) -> Iterator[str]:
    """The lines of a changelog, each as soon as its row is there."""
    widths = [2, *_stream_widths(fields, max_width)]
    names = [_OP, *(visible(f.name) for f in fields)]
    yield from _table(widths, names, _shown(fields, rows, zone, show, True), max_width)


def batch_lines(
    fields: Sequence[t.Field],
    rows: Iterable[ChangelogRow],
    *,
    max_width: int,
    zone: dt.tzinfo,
    show: Show = cast,
) -> Iterator[str]:
    """The lines of a finished result, of which ``SAMPLE`` rows are read ahead."""
    shown = _shown(fields, rows, zone, show, False)
    cells = ([cut(c, max_width) for c in row] for row in shown)
    head = list(islice(cells, SAMPLE))
    columns = zip(*head, strict=True) if head else [()] * len(fields)
    names = [visible(f.name) for f in fields]
    widths = [max([_width(name), *map(_width, column)]) for name, column in zip(names, columns, strict=True)]
    yield from _table(widths, names, chain(head, cells), max_width)


def stream_width(fields: Sequence[t.Field], max_width: int) -> int:
    """How wide a changelog's table is."""
    return sum(_stream_widths(fields, max_width)) + 3 * len(fields) + 6


def _stream_widths(fields: Sequence[t.Field], max_width: int) -> list[int]:
    return [max(_width(visible(f.name)), _type_width(f.type, max_width), len(NULL)) for f in fields]


def vertical_lines(
    fields: Sequence[t.Field],
    rows: Iterable[ChangelogRow],
    *,
    zone: dt.tzinfo,
    show: Show = cast,
    op: bool,
) -> Iterator[str]:
    """A line for each column, uncut, as rows come; ``op`` says the row's kind above it."""
    titles = [visible(f.name) for f in fields]
    widest = max(map(_width, titles), default=0)
    names = [" " * (widest - _width(n)) + n for n in titles]
    writes = [show(f.type, zone) for f in fields]
    count = 0
    for count, (kind, carried) in enumerate(rows, start=1):
        yield f"-[ row {count}{f', {kind.short}' if op else ''} ]".ljust(widest + 24, "-")
        for name, write, value in zip(names, writes, carried, strict=True):
            lines = (NULL if value is None else write(value)).split("\n")
            yield f"{name} | " + f"\n{' ' * widest} | ".join(map(visible, lines))
    yield f"{count} row{'s' if count != 1 else ''} in set" if count else "Empty set"


def _table(widths: list[int], names: list[str], rows: Iterable[list[str]], max_width: int) -> Iterator[str]:
    """Cells wider than their column make it wider from there on, up to ``max_width``."""
    count = 0
    for count, whole in enumerate(rows, start=1):
        if count == 1:
            yield from (_border(widths), _line(widths, names), _border(widths))
        cells = [cut(c, max(w, max_width)) for c, w in zip(whole, widths, strict=True)]
        yield _line(widths, cells)
        widths = [max(w, _width(c)) for c, w in zip(cells, widths, strict=True)]
    if not count:
        yield "Empty set"
        return
    yield _border(widths)
    yield f"{count} row{'s' if count > 1 else ''} in set"


def _border(widths: list[int]) -> str:
    return "+" + "+".join("-" * (w + 2) for w in widths) + "+"


def _shown(
    fields: Sequence[t.Field], rows: Iterable[ChangelogRow], zone: dt.tzinfo, show: Show, op: bool
) -> Iterator[list[str]]:
    writes = [show(f.type, zone) for f in fields]
    for kind, carried in rows:
        cells = [NULL if v is None else visible(write(v)) for write, v in zip(writes, carried, strict=True)]
        yield [kind.short, *cells] if op else cells


def visible(text: str) -> str:
    """``text`` without what would move a terminal's cursor."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def _line(widths: list[int], cells: list[str]) -> str:
    padded = (" " * (w - _width(c)) + c for w, c in zip(widths, cells, strict=True))
    return "| " + " | ".join(padded) + " |"


def cut(cell: str, width: int) -> str:
    """``cell`` in at most so many columns of a terminal."""
    if _width(cell) <= width:
        return cell
    kept, used = "", 0
    for char in cell:
        used += _width(char)
        if used > width - 3:
            break
        kept += char
    return kept + "..."


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@singledispatch
def _type_width(kind: t.LogicalType, default: int) -> int:
    return _FIXED.get(type(kind), default)


@_type_width.register
def _(kind: t.DecimalType, default: int) -> int:
    return kind.precision + 3


@_type_width.register
def _(kind: t.TimeType, default: int) -> int:
    return 8 if not kind.precision else kind.precision + 9


@_type_width.register(t.TimestampType)
@_type_width.register(t.LocalZonedTimestampType)
def _(kind: t.TimestampType, default: int) -> int:
    return 19 if not kind.precision else kind.precision + 20


_FIXED: dict[type[t.LogicalType], int] = {
    t.BooleanType: 7,
    t.TinyIntType: 4,
    t.SmallIntType: 6,
    t.IntType: 11,
    t.BigIntType: 20,
    t.DateType: 10,
}
