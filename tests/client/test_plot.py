"""Plots and tables that change on a terminal, without a terminal: what is drawn, and what is bounded."""

from __future__ import annotations

import datetime as dt
import io
import random
import re
from collections import Counter
from typing import Any

import pytest

from tidemill.changelog.rowkind import RowKind
from tidemill.client.folding import Folding
from tidemill.client.live import Live, LiveTable
from tidemill.client.plot import Plot, bar_lines, chosen
from tidemill.client.plot_lines import line_plot
from tidemill.errors import ValidationError
from tidemill.functions.text.cast import cast
from tidemill.session.rows import values
from tidemill.types.logical import BIGINT, INT, STRING, Field, TimestampType

INSERT, BEFORE, AFTER, DELETE = RowKind
WORDS = (Field("word", STRING), Field("n", BIGINT))
COLOUR = re.compile(r"\x1b\[\d+m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(_: int, value: object) -> str:
    return str(value)


def test_an_update_keeps_the_place_of_its_row() -> None:
    folding = Folding(10)
    for kind, row in (
        (INSERT, ("a", 1)),
        (INSERT, ("b", 1)),
        (BEFORE, ("a", 1)),
        (BEFORE, ("b", 1)),
        (AFTER, ("a", 2)),
        (AFTER, ("b", 2)),
    ):
        folding.change(kind, row)
    assert folding.rows == [("a", 2), ("b", 2)]
    folding.change(BEFORE, ("a", 2))
    folding.change(DELETE, ("b", 2))
    folding.change(AFTER, ("c", 1))
    assert folding.rows == [("c", 1)]


def test_folding_is_what_a_multiset_gives() -> None:
    source = random.Random(3)
    folding, held = Folding(1 << 30), Counter[Any]()
    for _ in range(3_000):
        row = (source.randrange(20),)
        going = held[row] and source.random() < 0.5
        kind = source.choice((BEFORE, DELETE) if going else (INSERT, AFTER))
        folding.change(kind, row)
        held[row] += kind.weight
    assert Counter(folding.rows) == +held
    bounded = Folding(5)
    for n in range(100):
        bounded.change(INSERT, (n,))
        bounded.change(DELETE, (n - 50,))
    assert bounded.rows == [(n,) for n in range(95, 100)]


def test_which_columns_are_drawn() -> None:
    time = Field("t", TimestampType(precision=3))
    picked = chosen((Field("id", INT), Field("word", STRING), time, Field("n", BIGINT)))
    assert (picked.value, picked.name, picked.time) == (3, 1, 2)
    picked = chosen((Field("id", INT), Field("n", BIGINT)))
    assert (picked.value, picked.name, picked.time) == (1, 0, None)
    with pytest.raises(ValidationError, match="no column of numbers"):
        chosen((Field("word", STRING),))


def test_bars_say_their_values_with_all_their_digits() -> None:
    plot = Plot(WORDS, said)
    for row in (("spark", 9223372036854775807), ("flink", 4611686018427387904), ("\x1b[31m", None)):
        plot.change(INSERT, row)
    title, spark, flink, hostile = plot.lines(60, 10)
    assert title == "n by word"
    assert spark.split() == ["spark", "█" * spark.count("█"), "9223372036854775807"]
    assert flink.endswith("4611686018427387904")
    assert spark.count("█") in (2 * flink.count("█"), 2 * flink.count("█") + 1)
    assert "\x1b" not in hostile
    assert hostile.endswith("<NULL>")
    for n in range(20):
        plot.change(INSERT, (str(n), n))
    lines = plot.lines(60, 10)
    assert (len(lines), lines[-1]) == (10, "and 15 more")
    below = bar_lines([("a", -2.0, "-2"), ("b", 2.0, "2")], 40)
    assert below[0].index("█") < below[1].index("█")
    assert len({line.count("█") for line in below}) == 1


def test_lines_rise_and_have_a_legend() -> None:
    plot = line_plot({"up": [(0.0, 0.0), (60.0, 1000.0)], "flat": [(0.0, 500.0)]}, 50, 12, moments=True)
    *rows, axis, legend = [COLOUR.sub("", line) for line in plot]
    assert rows[0].startswith(" 1k ┤")
    assert rows[-1].startswith("  0 ┤⣀")
    assert rows[0].endswith(("⠔", "⠊", "⡠", "⠤", "⠒", "⠉", "⠈"))
    assert axis.split() == ["00:00:00", "00:01:00"]
    assert legend.split() == ["━━", "up", "━━", "flat"]
    assert max(map(len, rows)) <= 50
    assert line_plot({}, 50, 12, moments=True) == ["(nothing yet)"]


def test_a_number_alone_is_followed_over_time() -> None:
    now = [0.0]
    plot = Plot((Field("n", BIGINT),), said, clock=lambda: now[0])
    plot.change(INSERT, (1,))
    plot.lines(60, 10)
    for seconds in range(1, 1_000):
        now[0] = float(seconds)
        plot.change(BEFORE, (seconds,))
        plot.change(AFTER, (seconds + 1,))
        lines = plot.lines(60, 10)
    assert lines[0] == "n"
    assert lines[1].startswith(" 1k ┤")
    assert lines[-1].split() == ["00:11:40", "00:16:39"]
    assert len(lines) <= 10


def test_what_is_drawn_takes_the_place_of_what_was() -> None:
    screen = Terminal()
    table = LiveTable(WORDS, Folding(100), 30, dt.UTC, values.or_rendered(cast))
    live = Live(screen, table, size=lambda: (20, 9))
    table.change(INSERT, ("a", "1"))
    live.tick()
    first = screen.getvalue().splitlines()
    assert first[1].split() == ["|", "word", "|", "n", "|"]
    live.show([(BEFORE, ("a", "1")), (AFTER, ("a", "2")), *((INSERT, (str(n), "0")) for n in range(50))])
    again = screen.getvalue()[len("\n".join(first)) + 1 :]
    assert again.startswith(f"\x1b[{len(first)}F\x1b[J")
    lines = again.partition("\x1b[J")[2].splitlines()
    assert len(lines) <= 7
    assert lines[-1] == "1 of 51 rows"
    assert max(map(len, lines)) <= 20
    live.clear()
    assert screen.getvalue().endswith(f"\x1b[{len(lines)}F\x1b[J")


def test_without_a_terminal_the_end_is_written_once() -> None:
    out = io.StringIO()
    Live(out, Plot(WORDS, said), size=lambda: (40, 10)).show([(INSERT, ("a", 1)), (INSERT, ("b", 2))])
    assert out.getvalue().splitlines()[0] == "n by word"
    assert len(out.getvalue().splitlines()) == 3
    assert "\x1b" not in out.getvalue()
