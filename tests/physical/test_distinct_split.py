"""A split distinct aggregate shows its parts and runs as it was written."""

from __future__ import annotations

from tests.physical.builders import CLICKS, aggregate, call, plan, scan
from tidemill.physical import nodes as p
from tidemill.physical.explain.text import physical_plan
from tidemill.physical.traits.mini_batch import MiniBatchConfig
from tidemill.physical.tree import walk

SPLIT = {
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.optimizer.distinct-agg.split.bucket-num": "16",
}
ROOT = aggregate(
    scan(CLICKS),
    (0,),
    call("COUNT", 1, name="d", distinct=True),
    call("AVG", 2, name="a"),
)


def test_average_is_shown_as_sum_and_count_but_runs_whole() -> None:
    shown = plan(ROOT, SPLIT)
    assert isinstance(shown, p.GroupAggregate)
    assert [c.function for c in shown.calls] == ["$SUM0", "$SUM0", "$SUM0"]
    runs = plan(ROOT, SPLIT, executed=True)
    assert isinstance(runs, p.GroupAggregate)
    assert runs.calls == ROOT.calls
    assert isinstance(runs.source, p.TableSourceScan)
    assert shown.fields == runs.fields == ROOT.fields


def test_buckets_follow_the_option() -> None:
    text = physical_plan(plan(ROOT, SPLIT), changelog_mode=False)
    assert "MOD(HASH_CODE(url), 16) AS $f3" in text
    assert "groupBy=[usr, $f3], partialFinalType=[PARTIAL]" in text


def test_two_columns_take_one_copy_of_a_row_each() -> None:
    root = aggregate(
        scan(CLICKS),
        (0,),
        call("COUNT", 1, name="d", distinct=True),
        call("COUNT", 2, name="e", distinct=True),
        call("SUM", 2, name="s"),
    )
    expands = [x for x in walk(plan(root, SPLIT)) if isinstance(x, p.Expand)]
    shown = physical_plan(expands[0], changelog_mode=False).splitlines()[0]
    assert shown == (
        "Expand(projects=[{usr, url, n, $f3, null AS $f4, 1 AS $e}, "
        "{usr, url, n, null AS $f3, $f4, 2 AS $e}, {usr, url, n, null AS $f3, null AS $f4, 3 AS $e}])"
    )


def test_incremental_phase_joins_the_inner_ones() -> None:
    config = MiniBatchConfig(latency=2000, size=None)
    text = physical_plan(plan(ROOT, SPLIT, mini_batch=config), changelog_mode=False)
    assert "GlobalGroupAggregate(groupBy=[usr], partialFinalType=[FINAL]" in text
    assert (
        "IncrementalGroupAggregate(partialAggGrouping=[usr, $f3], finalAggGrouping=[usr], "
        "select=[usr, COUNT(distinct$0 count$0) AS count$0, $SUM0(sum$1) AS sum$1, "
        "COUNT(count$2) AS count$2])"
    ) in text


def test_nothing_to_split_without_distinct() -> None:
    node = plan(aggregate(scan(CLICKS), (0,), call("SUM", 2)), SPLIT)
    assert type(node) is p.GroupAggregate
