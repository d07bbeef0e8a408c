"""A recipe of CONTRIBUTING.md needs the files that it names, and no others.

Each folder here has what one recipe adds: a text is a new file of the package, or the end of an existing
file. All are put into one copy of the package, which then runs SQL.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tidemill

HERE = Path(__file__).parent
PACKAGE = Path(tidemill.__file__).parent
PROMISED = {"aggregate": 2, "window_assigner": 1, "operator": 5, "format": 0}
"""The most files of the package that a recipe adds or changes; the kernel's folder is one of them."""
ROWS = "a,6,1\nb,5,2\na,3,4\na,6,11\nb,9,12\n"
SHIFTS = "SHIFTS(TABLE r, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)"
EXPECTED = {
    "SELECT k, BIT_XOR(v) AS x FROM r GROUP BY k": [["a", "3"], ["b", "12"]],
    # A stream takes sums back: 15 and 14 are left.
    "SELECT BIT_XOR(s) AS x FROM (SELECT k, SUM(v) AS s FROM r GROUP BY k)": [["1"]],
    f"SELECT EXTRACT(SECOND FROM window_end) AS e, SUM(v) AS s FROM TABLE({SHIFTS})"
    " GROUP BY window_start, window_end": [["10", "3"], ["13", "15"], ["3", "11"]],
    "SELECT k, v, n FROM written": [
        ["a", "3", "4"],
        ["a", "6", "1"],
        ["a", "6", "11"],
        ["b", "5", "2"],
        ["b", "9", "12"],
    ],
}
FIRST = "SELECT k, v FROM TABLE(FIRST_ROWS(TABLE r PARTITION BY k, 2))"


def additions(recipe: str) -> dict[Path, str]:
    """The texts of a recipe by the files of the package that they are for."""
    folder = HERE / recipe
    return {
        path.relative_to(folder).with_suffix(".py"): path.read_text("utf-8") for path in folder.rglob("*.txt")
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package and all additions, and beside it the package of the format."""
    root = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PACKAGE, root / "tidemill", ignore=shutil.ignore_patterns("__pycache__"))
    for recipe in PROMISED:
        place = root if recipe == "format" else root / "tidemill"
        for path, text in additions(recipe).items():
            (place / path).parent.mkdir(exist_ok=True)
            with (place / path).open("a", encoding="utf-8") as file:
                file.write(text)
    metadata = root / "my_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tidemill.formats]\npairs = my_package.format:FORMAT\n")
    return root


def run(copy: Path, *command: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *command],
        input=text,
        env=os.environ | {"PYTHONPATH": str(copy)},
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("recipe", PROMISED)
def test_a_recipe_needs_no_more_files_than_it_says(recipe: str) -> None:
    inside = [path for path in additions(recipe) if recipe != "format"]
    assert len(inside) == PROMISED[recipe]


def test_recipes_run(copy: Path, tmp_path: Path, processes: None) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    columns = "k STRING, v INT, n INT"
    time = "ts AS TIMESTAMPADD(SECOND, n, TIMESTAMP '2024-01-01 00:00:00'), WATERMARK FOR ts AS ts"
    files = f"'connector' = 'filesystem', 'path' = '{tmp_path}"
    statements = [
        f"CREATE TABLE r ({columns}, {time}) WITH ({files}/rows.csv', 'format' = 'csv')",
        f"CREATE TABLE written ({columns}) WITH ({files}/written', 'format' = 'pairs')",
        "SET 'tidemill.epoch.max-rows' = '2'",
        "INSERT INTO written SELECT k, v, n FROM r",
        *EXPECTED,
        FIRST,
        "SET 'execution.runtime-mode' = 'batch'",
        *EXPECTED,
        FIRST,
    ]
    output = run(copy, str(HERE / "run_sql.py"), text="".join(f"{json.dumps(s)}\n" for s in statements))
    results = [json.loads(x.removeprefix("RESULT ")) for x in output.splitlines() if x.startswith("RESULT ")]
    wanted = list(EXPECTED.values())
    first_two = [["a", "3"], ["a", "6"], ["b", "5"], ["b", "9"]]
    refused = "FIRST_ROWS runs in streaming mode only"
    assert results == [*["OK"] * 4, *wanted, first_two, "OK", *wanted, refused]


def test_a_format_of_another_package_is_not_in_the_docs(copy: Path) -> None:
    found = "from tidemill.connectors.formats.registry import identifiers; print(identifiers())"
    assert "'pairs'" in run(copy, "-c", found)
    run(copy, str(PACKAGE.parent / "scripts" / "generate_docs.py"), "--check")
