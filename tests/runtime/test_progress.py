"""What an epoch says it wrote, by the tokens of its sinks."""

from __future__ import annotations

import json

import pytest

from tidemill.runtime.progress import rows_of


@pytest.mark.parametrize(
    ("token", "rows"),
    [
        ({"rows": 7}, 7),
        ({"files": [["part-1.csv", 3], ["part-2.csv", 4]]}, 7),
        ({"files": [["upsert-0", "upsert", 5], ["delete-0", "delete", 2]]}, 7),
        ({"files": []}, 0),
        (["+I[1]", "+I[2]"], 2),
    ],
)
def test_rows_of_a_token(token: object, rows: int) -> None:
    assert rows_of(json.dumps(token)) == rows
