"""Cases that do not pass, by id, each with the reason; the compatibility page shows them.

Strict: a case that passes although it is listed here fails the suite.
"""

from __future__ import annotations

_FIRST_ALONE = "in Flink the first row is a bundle of its own; the final rows are equal"

GAPS: dict[str, str] = {
    "windows/hop_not_divisible": "Flink refuses HOP whose slide does not divide its size; Tidemill runs it",
    "types/cast_string_to_datetime": "timestamps keep microseconds; nanoseconds are cut off",
    "explain/sink_upsert_on_conflict_required": "`table.exec.sink.require-on-conflict` is false by default",
    "time/wt_minibatch_split": (
        "Flink lets a watermark through only every allow-latency; Tidemill whenever a window may end"
    ),
    "topn_dedup/keep_last_minibatch_compact": _FIRST_ALONE,
    "topn_dedup/rank_function": "Flink refuses RANK() in streaming; Tidemill runs it",
    "topn_dedup/rank_no_limit": "Flink refuses descending OVER windows; Tidemill runs them",
}

FINAL_GAPS = frozenset({"time/wt_minibatch_split"})
"""Those whose final rows differ, too; in the others only the changes do."""
