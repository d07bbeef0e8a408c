"""Java properties as Spark reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.config.properties import parse_properties, read_properties
from tidemill.errors import ConnectorError

TEXT = r"""
# a comment
! another = one
spark.master            spark://host:7077
spark.app.name=two words
spark.files : a,b
spark.executor.extraJavaOptions -Dx="1 \
    2" -Dy=c:\\d
  with\ space = v
empty
spark.master=yarn
"""


def test_keys_and_values() -> None:
    assert parse_properties(TEXT) == {
        "spark.master": "yarn",
        "spark.app.name": "two words",
        "spark.files": "a,b",
        "spark.executor.extraJavaOptions": '-Dx="1 2" -Dy=c:\\d',
        "with space": "v",
        "empty": "",
    }


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"Cannot read the options in '.*/none.conf': No such file"):
        read_properties(tmp_path / "none.conf")
