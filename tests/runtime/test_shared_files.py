"""Local paths on a cluster: refused, unless they are said to be shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connectors.sources import table
from tidemill.connectors.api import SourceRequest
from tidemill.errors import ValidationError
from tidemill.runtime.shared_files import SharedFiles
from tidemill.runtime.tables import make_source
from tidemill.types import logical as t
from tidemill.types.logical import Field

CLUSTER = "spark://host:7077"


@pytest.mark.parametrize(
    ("declared", "location", "shared"),
    [
        ("", "/data", False),
        ("false", "/data", False),
        ("", "file:///data", False),
        ("true", "/data", True),
        ("TRUE", "relative", True),
        ("/data, /more", "/data", True),
        ("/data, /more", "/more/of/it", True),
        ("file:///data", "/data/x", True),
        ("/data", "/database", False),
        ("/data", "/data/../etc", False),
        ("", "s3://bucket/data", True),
        ("", "hdfs://name/data", True),
    ],
)
def test_what_is_shared(declared: str, location: str, shared: bool) -> None:
    files = SharedFiles(master=CLUSTER, declared=declared)
    if shared:
        files.check(location, "It")
        return
    with pytest.raises(ValidationError, match=r"It is '.*a path that each machine has for itself") as e:
        files.check(location, "It")
    assert "'tidemill.shared-filesystem' to 'true'" in e.value.hint
    for master in ("local", "local[4]", "local[*,3]"):
        SharedFiles(master=master).check(location, "It")


def test_executors_on_one_machine_are_a_cluster() -> None:
    with pytest.raises(ValidationError):
        SharedFiles(master="local-cluster[2,1,1024]").check("/data", "It")


def test_a_job_without_a_checkpoint_directory(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="needs a place for its state") as e:
        SharedFiles(master=CLUSTER).temporary_directory()
    assert "'execution.checkpointing.dir'" in e.value.hint
    assert "'tidemill.temporary-directory'" in e.value.hint
    with pytest.raises(ValidationError, match=r"'tidemill\.temporary-directory' is '/scratch'"):
        SharedFiles(master=CLUSTER, temporary="/scratch").temporary_directory()
    on_store = SharedFiles(master=CLUSTER, temporary="s3://b/scratch/")
    assert on_store.temporary_directory().startswith("s3://b/scratch/tidemill-")
    assert on_store.temporary_directory() != on_store.temporary_directory()
    alone = SharedFiles(master="local[2]", temporary=str(tmp_path))
    assert alone.temporary_directory().startswith(f"{tmp_path}/tidemill-")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"connector": "filesystem", "path": "/data", "format": "csv"},
            "Option 'path' of table .* is '/data'",
        ),
        (
            {"connector": "jdbc", "url": "jdbc:sqlite:/d/b.db", "table-name": "t"},
            "Option 'url' of table .* is '/d/b.db'",
        ),
        (
            {"connector": "spark", "format": "rate", "spool.path": "/spool"},
            "Option 'spool.path' of table .* is '/spool'",
        ),
    ],
)
def test_tables_say_what_must_be_shared(options: dict[str, str], said: str) -> None:
    declared = table({"a": t.INT}, options)
    request = SourceRequest(
        table=declared,
        options=options,
        fields=(Field("a", t.INT),),
        metadata={},
        sequence=False,
        parallelism=1,
        time_zone="UTC",
        streaming=True,
    )
    with pytest.raises(ValidationError, match=said):
        make_source(request, SharedFiles(master=CLUSTER))
