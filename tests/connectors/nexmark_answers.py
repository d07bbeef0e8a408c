"""Nexmark's queries over the same events: what a run answers, as rows or as a digest of many.

    python -m tests.connectors.nexmark_answers

asks Flink again (``$FLINK_ORACLE``, or ``../shared/oracle/oracle``) and writes ``recorded/nexmark.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.nexmark import export
from tests.physical.oracle_plans import skeleton
from tidemill.connectors.nexmark import scripts

EVENTS = 5_000
WINDOWED = ("q5", "q7", "q8", "q11")
"""Over slow events, so that many windows begin and end."""
PLAIN = tuple(name for name in scripts.names() if name not in (*WINDOWED, "q6", "q12", "q13"))
"""Flink refuses q6, its own connectors for files cannot be looked into, as q13 does, and the answer of q12
depends on the clock."""
SLOW = 20
"""Of them come in a second."""
RECORDED = Path(__file__).parent / "recorded" / "nexmark.json"
_ROOT = Path(__file__).resolve().parents[2]
_FEW = 20
_ROWTIME = " *ROWTIME*"  # only in streaming
# Flink is asked for the same without the user function.
_CREATED = re.compile("CREATE FUNCTION .*;")
_BUILT_IN = (
    "count_char(extra, 'c')",
    "COALESCE(CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT), 0)",
)
# Flink says that the rows of this Top-1 never change, so it gives no -U for those that do.
_UPSERTED = {"q9"}


def queries(declaration: str, names: Iterable[str], mode: str) -> str:
    """A script whose queries are those of ``names``, in order."""
    texts = [f"SET 'execution.runtime-mode' = '{mode}';", declaration]
    for name in names:
        texts += [scripts.query(name).split("CREATE TABLE")[0], f"{scripts.select(name)};"]
    return "\n".join(texts)


def plans(declaration: str, names: Iterable[str]) -> str:
    """A script that explains the INSERTs of ``names``, in order."""
    texts = [declaration]
    for name in names:
        create, insert = scripts.query(name).split("INSERT INTO")
        texts += [create.replace("${OUTPUT}", "/none"), f"EXPLAIN CHANGELOG_MODE INSERT INTO{insert}"]
    return "\n".join(texts)


def answers(document: dict[str, Any], names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By query, of a JSON document for a script of ``queries``."""
    found = [s for s in document["statements"] if s.get("kind") == "query"]
    wanted = tuple(names)
    assert len(found) == len(wanted), document["statements"][-1]
    return {name: _answer(name, s) for name, s in zip(wanted, found, strict=True)}


def skeletons(document: dict[str, Any]) -> list[list[str]]:
    """The plans of a JSON document for a script of ``plans``."""
    texts = [s["explain"] for s in document["statements"] if s.get("kind") == "explain"]
    return [skeleton(t.split("== Optimized Physical Plan ==\n")[1].split("\n\n")[0]) for t in texts]


def _answer(name: str, statement: dict[str, Any]) -> dict[str, Any]:
    rows = _last(statement["rows"]) if name in _UPSERTED else _folded(statement["rows"])
    made = {
        "columns": [f"{c['name']} {c['type']}".removesuffix(_ROWTIME) for c in statement["columns"]],
        "rows": len(rows),
        "digest": hashlib.sha256("\n".join(rows).encode()).hexdigest(),
    }
    return made | ({"values": rows} if len(rows) <= _FEW else {})


def _folded(changes: list[list[Any]]) -> list[str]:
    count: Counter[str] = Counter()
    for kind, *values in changes:
        count[json.dumps(values)] += 1 if kind in ("+I", "+U") else -1
    assert min(count.values(), default=0) >= 0, "a row was taken back that was not there"
    return sorted(count.elements())


def _last(changes: list[list[Any]]) -> list[str]:
    """The newest row of each key, which is the first column."""
    rows: dict[Any, str] = {}
    for kind, *values in changes:
        if kind in ("+I", "+U"):
            rows[values[0]] = json.dumps(values)
        elif kind == "-D":
            del rows[values[0]]
    return sorted(rows.values())


def record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        declaration, slow = (
            scripts.file_declaration(str(export(EVENTS, Path(folder), rate))) for rate in (0, SLOW)
        )
        streamed, batch, planned, windowed, windows_planned = _ask(
            folder,
            queries(declaration, PLAIN, "streaming"),
            queries(declaration, PLAIN, "batch"),
            plans(declaration, PLAIN),
            queries(slow, WINDOWED, "streaming"),
            plans(slow, WINDOWED),
        )
    both = answers(streamed, PLAIN), answers(batch, PLAIN)
    for name in PLAIN:
        if both[0][name] != both[1][name]:
            print(f"{name}: Flink's batch answer differs from its streaming answer")
    found = both[0] | answers(windowed, WINDOWED)
    trees = zip((*PLAIN, *WINDOWED), (*skeletons(planned), *skeletons(windows_planned)), strict=True)
    document = {name: {"plan": plan, **found[name]} for name, plan in trees}
    RECORDED.write_text(json.dumps(document, indent=1) + "\n")


def _ask(folder: str, *texts: str) -> list[dict[str, Any]]:
    oracle = os.environ.get("FLINK_ORACLE", str(_ROOT / ".." / "shared" / "oracle" / "oracle"))
    paths = [Path(folder) / f"{i}.sql" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(_CREATED.sub("", text).replace(*_BUILT_IN))
    done = subprocess.run([oracle, "run", *map(str, paths)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    record()
