"""EXPLAIN against the plans that Flink 2.3 gave."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.goldens.comparer import check
from tests.goldens.oracle_goldens import parameters, session
from tidemill.client import json_output


@pytest.mark.parametrize("case", parameters(("explain",)))
def test_the_view_is_flinks(case: Any) -> None:
    written = io.StringIO()
    json_output.run_script(case.sql, {}, session, written)
    check(case, json.loads(written.getvalue()))
