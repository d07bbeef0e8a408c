"""What comes after an epoch is looked through while it runs; nothing of that is planned before its time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.runtime.running import Crash, Session, crash_at
from tests.visible import lines
from tidemill.connectors.filesystem import record_search
from tidemill.connectors.filesystem.record_search import RecordSearch, Stretch
from tidemill.errors import ConnectorError

ROWS = 60
INSERT = "INSERT INTO snk SELECT k, s FROM src"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """By whether it was another thread, and from where on."""
    found: list[tuple[bool, int]] = []
    look = RecordSearch._plain_starts

    def plain_starts(self: RecordSearch, stretch: Stretch) -> list[int] | None:
        found.append((threading.current_thread().name == "tidemill-look-ahead", stretch.start))
        return look(self, stretch)

    monkeypatch.setattr(RecordSearch, "_plain_starts", plain_starts)
    monkeypatch.setattr(record_search, "_WORTH_LOCAL", 10)
    return found


def statements(folder: Path) -> tuple[str, ...]:
    return (
        "CREATE TABLE src (k INT, s STRING) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/in', 'format'='csv')",
        "CREATE TABLE snk (k INT, s STRING) "
        f"WITH ('connector'='filesystem', 'path'='{folder}/out', 'format'='csv')",
    )


def options(folder: Path) -> dict[str, str]:
    return {"tidemill.epoch.max-bytes": "100", "execution.checkpointing.dir": str(folder / "checkpoint")}


def written(folder: Path, text: str) -> list[str]:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "a.csv").write_text(text)
    return sorted(text.splitlines())


@pytest.mark.usefixtures("spark")
def test_the_next_range_is_looked_through_once_while_the_epoch_runs(
    tmp_path: Path, looks: list[tuple[bool, int]]
) -> None:
    expected = written(tmp_path, "".join(f"{n},text\n" for n in range(100, 100 + ROWS)))
    session = Session(options(tmp_path))
    session.execute(*statements(tmp_path), INSERT)
    assert sorted(lines(tmp_path / "out")) == expected
    assert len(session.progress) == 5
    assert looks == [(False, 0), (True, 108), (True, 216), (True, 324), (True, 432)]


@pytest.mark.usefixtures("spark", "looks")
@pytest.mark.parametrize("step", ["planned", "ran", "committed", "published"])
def test_a_crash_after_a_look_ahead_loses_nothing_and_doubles_nothing(tmp_path: Path, step: str) -> None:
    expected = written(tmp_path, "".join(f"{n},text\n" for n in range(100, 100 + ROWS)))
    with pytest.raises(Crash):
        Session(options(tmp_path), crash_at(step, 2)).execute(*statements(tmp_path), INSERT)
    plans = [f.name for f in (tmp_path / "checkpoint" / "epochs").glob("*.plan.json")]
    assert max(plans) == "2.plan.json"
    Session(options(tmp_path)).execute(*statements(tmp_path), INSERT)
    assert sorted(lines(tmp_path / "out")) == expected


@pytest.mark.usefixtures("spark")
def test_quotes_that_a_look_ahead_finds_are_minded(tmp_path: Path, looks: list[tuple[bool, int]]) -> None:
    plain = "".join(f"{n},text\n" for n in range(100, 130))
    quoted = "".join(f'{n},"a\n\n\nb"\n' for n in range(200, 230))
    written(tmp_path, plain + quoted)
    session = Session(options(tmp_path))
    session.execute(*statements(tmp_path), INSERT)
    found = "".join(f.read_text() for f in sorted((tmp_path / "out").rglob("*")) if f.is_file())
    assert sorted(found.replace('"a\n\n\nb"', "q").splitlines()) == sorted(
        [f"{n},text" for n in range(100, 130)] + [f"{n},q" for n in range(200, 230)]
    )
    assert any(other for other, _ in looks)


@pytest.mark.usefixtures("spark")
def test_a_file_that_changes_after_it_was_looked_at_is_an_error(
    tmp_path: Path, looks: list[tuple[bool, int]]
) -> None:
    text = "".join(f"{n},text\n" for n in range(100, 100 + ROWS))
    written(tmp_path, text)

    def change(step: str) -> None:
        if step == "ran" and looks[-1][0]:
            (tmp_path / "in" / "a.csv").write_text(text.replace("text", '"tx"', 40)[: len(text)])

    with pytest.raises(ConnectorError, match="has changed"):
        Session(options(tmp_path), change).execute(*statements(tmp_path), INSERT)
    assert len(lines(tmp_path / "out")) == 12
