"""Finished results on the screen, in files and in a pager: few of their rows are in memory."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidemill.changelog.rowkind import RowKind
from tidemill.client import json_output
from tidemill.client.pager import Pager
from tidemill.client.show_result import show_query
from tidemill.config.option import Configuration
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind, TableResult
from tidemill.session.rows import tableau
from tidemill.session.rows.decoder import ChangelogRow
from tidemill.types import logical as t

ROWS = 20_000


class Read(io.StringIO):
    """Knows by how many rows its reader was ahead of what is written, at most."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = self.written = self.ahead = 0

    def rows(self, last: Exception | None = None) -> Iterator[ChangelogRow]:
        for self.taken in range(1, ROWS + 1):
            self.ahead = max(self.ahead, self.taken - self.written)
            yield RowKind.INSERT, (self.taken,)
        if last is not None:
            raise last

    def write(self, text: str) -> int:
        self.written += any(character.isdigit() for character in text)
        return super().write(text)


def result(rows: Iterator[ChangelogRow]) -> TableResult:
    return TableResult(kind=StatementKind.QUERY, fields=(t.Field("n", t.BIGINT),), rows=rows)


@pytest.mark.parametrize("layout", ["TABLE", "VERTICAL"])
def test_a_result_is_written_as_it_is_read(layout: str) -> None:
    out = Read()
    show_query(result(out.rows()), Configuration({"tidemill.display.layout": layout}), out)
    assert out.ahead <= tableau.SAMPLE
    assert out.getvalue().endswith(f"{ROWS} rows in set\n")


def test_json_is_written_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1 AS n; SELECT 2 AS n")
    out = Read()
    answers = iter([result(out.rows()), result(out.rows(ValueError("late")))])
    monkeypatch.setattr(TableEnvironment, "execute", lambda *_: next(answers))
    json_output.run_script(str(tmp_path / "a.sql"), {}, TableEnvironment.create, out)
    assert out.ahead <= ROWS + 2
    assert out.ahead <= 1
    document: dict[str, Any] = json.loads(out.getvalue())
    assert document["ok"] is False
    assert [len(s["rows"]) for s in document["statements"]] == [ROWS, ROWS]
    assert "late" in document["statements"][1]["error"]["message"]


def test_a_pager_gets_what_it_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    reader = f"import sys; open({str(kept)!r}, 'w').writelines(sys.stdin.readline() for _ in range(50))"
    monkeypatch.setenv("PAGER", f'{sys.executable} -c "{reader}"')
    lines = iter([f"line {n}" for n in range(1_000_000)])
    assert list(Pager().show(lines)) == []
    assert kept.read_text().splitlines()[-1] == "line 49"
    assert next(lines, None) is not None
    assert list(Pager().show(iter(["short"]))) == ["short"]
