"""A list of changes of meaning: each is refused with its reason, or a backfill computes it anew.

Only plans are compared, as a start compares them before it writes anything. A reason names what differs, so
a change that is refused for another reason than its own fails here too.
"""

from __future__ import annotations

import pytest

from tests.runtime.evolution.changes.aggregations import AGGREGATIONS, SUM, by_k
from tests.runtime.evolution.changes.change import Change, altered, same
from tests.runtime.evolution.changes.joins import JOINS
from tests.runtime.evolution.changes.ranked import RANKED, match, over, top
from tests.runtime.evolution.changes.sources import KEPT, SOURCES
from tests.runtime.evolution.changes.windows import LATE, WINDOWS, group_windows, in_windows
from tidemill.errors import StateError
from tidemill.runtime.checkpoint.evolution import Verdict, backfilled

CHANGES = (*AGGREGATIONS, *WINDOWS, *JOINS, *RANKED, *SOURCES)


@pytest.mark.parametrize("change", CHANGES, ids=[f"{n}: {c.name}" for n, c in enumerate(CHANGES)])
def test_a_change_of_meaning_is_refused_or_backfilled(change: Change) -> None:
    found = change.found
    with pytest.raises(StateError, match=rf"belongs to another query \(.*{change.why}"):
        found.check("the savepoint 's'")
    verdicts = {c.verdict for c in backfilled(found).changes}
    assert Verdict.BACKFILLED in verdicts
    assert not verdicts & {Verdict.REFUSED, Verdict.REPLACED, Verdict.ADDED}


HAVING = "SELECT k, SUM(a) AS s FROM t GROUP BY k HAVING {} > 1"
TWO_CALLS = by_k("SUM(a), COUNT(*)")
MEANT = (
    Change("HAVING", HAVING.format("COUNT(*)"), HAVING.format("SUM(a)"), ""),
    Change("HAVING of a new call", HAVING.format("COUNT(*)"), HAVING.format("MAX(b)"), ""),
    Change("a call before others", by_k("SUM(a)"), by_k("COUNT(*), SUM(a)"), ""),
    Change("one call less in an expression", by_k("SUM(a) + COUNT(*) AS x"), by_k("SUM(a) AS x"), ""),
    Change("another name", by_k("SUM(a) AS s"), by_k("MIN(b) AS m"), ""),
    Change("an order that is the usual one", top(), top("a DESC NULLS LAST"), ""),
    Change("fewer rows", top(), top(test="rn <= 2"), ""),
    Change("a call over rows that are kept", over(order="a"), over("MAX(a)", order="a"), ""),
    Change("a measure", match(), match(measure="FIRST(B.b)"), ""),
    Change(
        "unreadable records",
        *same(SUM),
        "",
        tables=altered("t", "='json'", "='json', 'json.ignore-parse-errors'='true'"),
    ),
    Change(
        "a watermark's delay",
        *same(in_windows()),
        "",
        tables=altered("t", "AS ts)", "AS ts - INTERVAL '5' SECOND)"),
    ),
    Change("lateness", *same(group_windows()), "", options=LATE),
    Change("a column of a sink that keeps rows", KEPT, KEPT.replace("a, b", "b, a"), ""),
    Change("a sink", f"INSERT INTO s {TWO_CALLS}", f"INSERT INTO u {TWO_CALLS}", ""),
)


@pytest.mark.parametrize("change", MEANT, ids=[c.name for c in MEANT])
def test_what_changes_no_meaning_is_taken_over(change: Change) -> None:
    change.found.check("the savepoint 's'")
