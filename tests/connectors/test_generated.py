"""datagen and nexmark: the same rows whatever the cut; options as Flink reads them."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.connectors.sources import rows, rows_in_epochs, source, table
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.datagen.connector import CONNECTOR as DATAGEN
from tidemill.connectors.generated import GeneratedSource
from tidemill.connectors.nexmark.connector import _COLUMNS
from tidemill.connectors.nexmark.connector import CONNECTOR as NEXMARK
from tidemill.connectors.nexmark.scripts import declaration
from tidemill.connectors.registry import validate
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.types import logical as t

NUMBERS = {"a": t.INT, "b": t.STRING, "c": t.DOUBLE}


def made(columns: dict[str, t.LogicalType], options: dict[str, str], **kwargs: Any) -> GeneratedSource:
    declared = table(columns, {"connector": "datagen", **options})
    DATAGEN.validate(declared, declared.options)
    read = source(declared, **kwargs)
    assert isinstance(read, GeneratedSource)
    return read


def test_rows_do_not_depend_on_the_cut(spark: SparkSession) -> None:
    options = {"number-of-rows": "150000", "fields.b.length": "4"}
    whole = made(NUMBERS, options, sequence=True).read_all(spark).toArrow()
    assert whole["$seq"].to_pylist() == list(range(150000))
    draw = random.Random(7)
    read = made(NUMBERS, options, sequence=True)
    start = None
    cut: list[pa.Table] = []
    while not read.is_finished(start):
        end = read.next_offset(start, ReadLimit(rows=draw.randrange(30000, 70000)))
        cut.append(read.read(spark, start, end).toArrow())
        start = end
    assert len(cut) > 2
    assert pa.concat_tables(cut).equals(whole)


def test_sequences_end_the_source(spark: SparkSession) -> None:
    fields = {"a": t.INT, "b": t.STRING, "c": t.DecimalType(precision=5, scale=2), "d": t.INT}
    options = {f"fields.{c}.kind": "sequence" for c in "abc"}
    options |= {"fields.a.start": "1", "fields.a.end": "3", "fields.b.start": "8", "fields.b.end": "9"}
    options |= {"fields.c.start": "-1", "fields.c.end": "9", "fields.d.min": "5", "fields.d.max": "5"}
    read = made(fields, options)
    assert [(a, b, str(c), d) for a, b, c, d in rows(spark, read)] == [
        (1, "8", "-1.00", 5),
        (2, "9", "0.00", 5),
    ]


def test_bounds_lengths_and_nulls() -> None:
    fields = {
        "i": t.TinyIntType(),
        "d": t.DecimalType(precision=5, scale=2),
        "s": t.STRING,
        "c": t.CharType(length=3),
        "a": t.ArrayType(element=t.INT),
        "r": t.RowType(fields=(t.Field("x", t.BIGINT),)),
        "n": t.INT,
    }
    options = {"number-of-rows": "3", "fields.i.min": "-2", "fields.i.max": "2", "fields.d.min": "1.5"}
    options |= {
        "fields.d.max": "2",
        "fields.s.length": "5",
        "fields.s.var-len": "true",
        "fields.a.length": "2",
    }
    options |= {"fields.a.element.min": "1", "fields.a.element.max": "1", "fields.r.x.max": "0"}
    options |= {"fields.n.null-rate": "0.5"}
    block = made(fields, options).generator.block(0, 0).to_pydict()
    assert set(block["i"]) == {-2, -1, 0, 1, 2}
    assert {str(min(block["d"])), str(max(block["d"]))} == {"1.50", "2.00"}
    assert {len(s) for s in block["s"]} == {1, 2, 3, 4, 5}
    assert {len(s) for s in block["c"]} == {3}
    assert all(a == [1, 1] for a in block["a"])
    assert max(r["x"] for r in block["r"]) <= 0
    assert 0.45 < sum(n is None for n in block["n"]) / len(block["n"]) < 0.55


def test_times_are_fixed_by_the_offset(spark: SparkSession) -> None:
    read = made({"ts": t.TimestampType(precision=3), "d": t.DATE}, {"number-of-rows": "2"})
    read.clock = lambda: 1_700_000_000.125
    end = read.next_offset(None, ReadLimit())
    read.clock = lambda: 1_800_000_000.0
    moment = datetime(2023, 11, 14, 22, 13, 20, 125000)
    assert [tuple(r) for r in read.read(spark, None, end).collect()] == [(moment, moment.date())] * 2


def test_rate_holds_rows_back() -> None:
    read = made(NUMBERS, {"rows-per-second": "10"}, streaming=True)
    now = [100.0]
    read.clock = lambda: now[0]
    first = read.next_offset(None, ReadLimit())
    assert first["row"] == 1
    now[0] += 2.5
    second = read.next_offset(first, ReadLimit())
    assert second["row"] == 26
    assert read.is_empty(second, read.next_offset(second, ReadLimit()))
    assert read.next_offset(second, ReadLimit(rows=5))["row"] == 26


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (NUMBERS, {"fields.z.min": "1"}, r"Unsupported options found for 'datagen'(?s:.*)fields\.z\.min"),
        (NUMBERS, {"fields.a.length": "1"}, r"fields\.a\.length"),
        (NUMBERS, {"fields.a.min": "x"}, r"'x' for key 'fields\.a\.min'"),
        (NUMBERS, {"fields.a.kind": "foo"}, "Unsupported generator kind: foo"),
        (NUMBERS, {"fields.a.kind": "sequence"}, r"required property 'fields\.a\.start'"),
        ({"c": t.CharType(length=3)}, {"fields.c.length": "5"}, "Custom length for fixed-length type"),
        (NUMBERS, {"rows-per-second": "0"}, "rows-per-second"),
        (NUMBERS, {"number-of-rows": "-1"}, "number-of-rows"),
        (NUMBERS, {"scan.parallelism": "0"}, "scan.parallelism"),
        (NUMBERS, {"fields.a.min": "3", "fields.a.max": "2"}, "must not be larger"),
    ],
)
def test_wrong_options_are_named(
    columns: dict[str, t.LogicalType], options: dict[str, str], message: str
) -> None:
    declared = table(columns, {"connector": "datagen", **options})
    with pytest.raises(ValidationError, match=message):
        validate(declared, declared.options, role="source")


def test_unbounded_in_batch_is_refused() -> None:
    with pytest.raises(ValidationError, match="unbounded"):
        made(NUMBERS, {})


def nexmark(streaming: bool = False, /, **options: str) -> GeneratedSource:
    given = {"connector": "nexmark"} | {k.replace("_", "."): v for k, v in options.items()}
    declared = table(_COLUMNS, given)
    NEXMARK.validate(declared, declared.options)
    read = source(declared, sequence=True, streaming=streaming)
    assert isinstance(read, GeneratedSource)
    return read


def test_nexmark_events_hang_together(spark: SparkSession) -> None:
    events = nexmark(events_num="10000").read_all(spark).orderBy("$seq").collect()
    assert [e.event_type for e in events[:51]] == [0, 1, 1, 1, *[2] * 46, 0]
    people = {e.person.id for e in events if e.event_type == 0}
    auctions = {e.auction.id: e.auction for e in events if e.event_type == 1}
    bids = [e.bid for e in events if e.event_type == 2]
    assert people == set(range(1000, 1200))
    assert sorted(auctions) == list(range(1000, 1600))
    assert sum(b.auction in auctions for b in bids) / len(bids) > 0.95
    assert sum(a.seller in people for a in auctions.values()) / len(auctions) > 0.95
    assert all(a.reserve > a.initialBid >= 100 and a.expires > a.dateTime for a in auctions.values())
    assert all(e.bid is None and e.auction is None for e in events if e.event_type == 0)
    hot = sum(b.channel in ("Google", "Facebook", "Baidu", "Apple") for b in bids) / len(bids)
    assert 0.45 < hot < 0.55
    assert events[-1].bid.dateTime == datetime(2015, 7, 15, 0, 0, 0, 999000)


def test_nexmark_is_deterministic_in_seed_and_cut(spark: SparkSession) -> None:
    whole = rows(spark, nexmark(events_num="300"))
    cut = rows_in_epochs(spark, nexmark(events_num="300"), ReadLimit(rows=77))
    assert [r for epoch in cut for r in epoch] == whole
    assert rows(spark, nexmark(events_num="300", seed="1")) != whole


def test_nexmark_stops_early_and_waits_if_told_to() -> None:
    stopped = nexmark(events_num="300", **{"stop-at": "20"})
    assert stopped.next_offset(None, ReadLimit())["row"] == 20
    assert stopped.is_bounded
    assert stopped.is_finished({"row": 20})
    waiting = nexmark(events_num="20", **{"keep-alive": "true"})
    assert not waiting.is_bounded
    assert not waiting.is_finished({"row": 20})
    assert waiting.is_empty({"row": 20, "time": 0}, waiting.next_offset({"row": 20, "time": 0}, ReadLimit()))
    assert nexmark(True, events_num="20", **{"max-emit-speed": "false"}).rate == 10_000
    assert nexmark(True, events_num="20", **{"stop-at": "-1", "max-emit-speed": "true"}).rate is None


def test_nexmark_refuses_what_it_cannot_do() -> None:
    with pytest.raises(NotSupportedError, match="first-event"):
        nexmark(**{"first-event.rate": "5"})
    declared = table({"price": t.BIGINT}, {"connector": "nexmark"})
    with pytest.raises(ValidationError, match="no column 'price'"):
        NEXMARK.validate(declared, declared.options)


def test_nexmark_declaration_has_its_views() -> None:
    text = declaration()
    assert [text.count(f"CREATE VIEW {v} AS") for v in ("person", "auction", "bid")] == [1, 1, 1]
