"""Cuts fall between records, whatever quotes are in the way; a naive scan is the judge."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tidemill.connectors.filesystem import cutting
from tidemill.connectors.filesystem.cutting import Cutter

PLAIN = ["1,x", "22,yy", "", '3,"q"', '4,"a,b"', '5,"n\nl\n"', '6,"d""d\n"', '"7",""']
ODD = [*PLAIN, '8,5" disk', '9,a"b"c', '10,""x']


def naive_ends(data: bytes, quote: str, escape: str) -> list[int]:
    """Byte by byte: the offset after each record."""
    ends, inside, start_of_field, at = [], False, True, 0
    while at < len(data):
        char = data[at : at + 1].decode("latin-1")
        if escape and char == escape:
            at += 2
            start_of_field = False
            continue
        if inside:
            if char == quote and data[at + 1 : at + 2].decode("latin-1") == quote:
                at += 1
            elif char == quote:
                inside = False
        elif char == quote and start_of_field:
            inside = True
        elif char == "\n":
            ends.append(at + 1)
        start_of_field = not inside and char in ",\n\r"
        at += 1
    return ends if ends and ends[-1] == len(data) else [*ends, len(data)]


@pytest.mark.parametrize(
    ("pieces", "escape"), [(PLAIN, ""), (ODD, ""), ([*ODD, '11,\\"z', '12,"a\\"\nb"'], "\\")]
)
def test_random_files_are_cut_at_record_ends(
    pieces: list[str], escape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(11)
    cutter = Cutter(quote='"', delimiter=",", escape=escape)
    for round_number in range(80):
        data = "\n".join(draw.choice(pieces) for _ in range(draw.randrange(1, 30))).encode()
        data += b"\n" if round_number % 2 else b""
        if not data:
            continue
        monkeypatch.setattr(cutting, "_BLOCK", draw.choice([7, 16, 64, 1 << 20]))
        ends = naive_ends(data, '"', escape)
        file = pa.BufferReader(data)
        limit = draw.randrange(1, 9)
        at, cuts = 0, [0]
        while at < len(data):
            at, count = cutter.cut(file, at, len(data), rows=limit, length=None)
            cuts.append(at)
            assert count == ends.index(at) + 1 - (ends.index(cuts[-2]) + 1 if cuts[-2] else 0)
        assert cuts[1:] == [*ends[limit - 1 : -1 : limit], ends[-1]]
        at = 0
        while at < len(data):
            step = draw.randrange(1, 40)
            end, _ = cutter.cut(file, at, len(data), rows=None, length=step)
            assert end == next((e for e in ends if e >= at + step), ends[-1])
            at = end


def test_lines_without_quotes_count_every_newline() -> None:
    file = pa.BufferReader(b'a"\nb\n"c\nd')
    assert Cutter().cut(file, 0, 9, rows=2, length=None) == (5, 2)
    assert Cutter().cut(file, 0, 9, rows=None, length=4) == (5, -1)
    assert Cutter().cut(file, 5, 9, rows=9, length=None) == (9, 2)
    assert Cutter().cut(file, 0, 9, rows=3, length=1) == (3, 1)
