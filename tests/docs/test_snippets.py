"""Every snippet of the README and the docs runs, page by page in one session, and shows what it says.

A printed table right after an ``sql`` block is the printed result of its last statement; lines may
come in another order, as tasks end in any. ``sh`` blocks that write files are run, others are not.
"""

from __future__ import annotations

import io
import subprocess
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs.pages import BROKER, FOLDER, ROOT, Block, blocks, pages
from tidemill.client import table_output
from tidemill.session.environment import TableEnvironment


@pytest.mark.every_case
@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in pages()])
def test_page(page: Path, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    places = {FOLDER: str(tmp_path)}
    if BROKER in page.read_text(encoding="utf-8"):
        places[BROKER] = request.getfixturevalue("kafka").servers
    environment = TableEnvironment.create()
    environment.context.rendered = True
    found = blocks(page)
    for block, after in zip(found, [*found[1:], Block("", "", 0)], strict=True):
        expected = after.text if after.text.startswith("+-") else None
        text = reduce(lambda text, place: text.replace(place, places[place]), places, block.text)
        run(Block(block.language, text, block.line), expected, environment)


def run(block: Block, expected: str | None, environment: TableEnvironment) -> None:
    if block.language == "sh" and block.text.startswith(("mkdir ", "cat >")):
        subprocess.run(["sh", "-ec", block.text], check=True)
    elif block.language == "python":
        exec(compile(block.text, f"line {block.line}", "exec"), {})
    elif block.language == "sql":
        shown = run_sql(block, environment)
        if expected is not None:
            assert sorted(shown[-len(expected.splitlines()) :]) == sorted(expected.splitlines()), block.line


def run_sql(block: Block, environment: TableEnvironment) -> list[str]:
    """The lines that the block's statements print."""
    out, errors = io.StringIO(), io.StringIO()
    assert table_output.run_script(environment, block.text, out, errors), (
        f"line {block.line}: {errors.getvalue()}"
    )
    return out.getvalue().splitlines()


def test_there_are_pages_to_test() -> None:
    assert len(pages()) >= 4
