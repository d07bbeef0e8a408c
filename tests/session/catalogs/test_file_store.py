"""The file catalog store: catalogs are there for sessions to come, as in a folder that Flink wrote."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.session.environments import ask, new_session
from tidemill.catalog.kinds import CatalogDescription
from tidemill.errors import StateError, ValidationError
from tidemill.session.catalogs.file_store import FileCatalogStore
from tidemill.session.environment import TableEnvironment


def session(folder: Path) -> TableEnvironment:
    return new_session(table__catalog_store__kind="file", table__catalog_store__file__path=str(folder))


def test_catalogs_are_there_for_other_sessions(tmp_path: Path) -> None:
    first, second = session(tmp_path / "s"), session(tmp_path / "s")
    ask(first, "CREATE CATALOG c COMMENT 'it''s' WITH ('type'='generic_in_memory', 'default-database'='d')")
    assert ask(second, "SHOW CATALOGS") == [("c",), ("default_catalog",)]
    assert ask(second, "SHOW DATABASES IN c") == [("d",)]
    assert "COMMENT 'it''s'" in ask(session(tmp_path / "s"), "SHOW CREATE CATALOG c")[0][0]
    with pytest.raises(ValidationError, match=r"Catalog c already exists\."):
        ask(second, "CREATE CATALOG c WITH ('type'='generic_in_memory')")
    ask(first, "DROP CATALOG c")
    assert ask(second, "SHOW CATALOGS") == [("default_catalog",)]
    with pytest.raises(ValidationError, match="is not set"):
        new_session(table__catalog_store__kind="file")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('---\ntype: "generic_in_memory"\ndefault-database: "d"\n', {"default-database": "d"}),
        (
            "type: generic_in_memory\n# a note\nurl: jdbc:x://h:1/d?a=b # mine\n",
            {"url": "jdbc:x://h:1/d?a=b"},
        ),
        ("'type': 'generic_in_memory'\n\"a b\": 'it''s'\n", {"a b": "it's"}),
    ],
)
def test_flinks_files_are_read(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    (tmp_path / "c.yaml").write_text(text)
    assert FileCatalogStore(str(tmp_path)).get("c").options == {"type": "generic_in_memory", **options}


def test_what_is_put_is_read_again(tmp_path: Path) -> None:
    store = FileCatalogStore(str(tmp_path / "new"))
    assert list(store.names()) == []
    made = CatalogDescription({"type": "x", "a'b": 'c"\\ #:\n', "empty": ""}, "words: ü")
    store.put("../odd name", made)
    assert (list(store.names()), store.get("../odd name")) == (["../odd name"], made)
    (file,) = (tmp_path / "new").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.remove("../odd name")
    store.remove("../odd name")
    assert list(store.names()) == []


def test_what_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("type: x\n  nested:\n    a: b\n")
    with pytest.raises(StateError, match=r"c\.yaml, line 2"):
        FileCatalogStore(str(tmp_path)).get("c")
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be used"):
        FileCatalogStore(str(tmp_path / "file")).put("c", CatalogDescription({}))
