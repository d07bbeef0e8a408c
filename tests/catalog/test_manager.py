"""Names, shadowing and the error texts of catalogs."""

from __future__ import annotations

import pytest

from tidemill.catalog.manager import CatalogManager, quoted
from tidemill.catalog.objects import CatalogFunction
from tidemill.catalog.table import CatalogTable, CatalogView, Column, ObjectPath
from tidemill.errors import ValidationError
from tidemill.types.logical import INT


def table(path: ObjectPath, *, temporary: bool = False) -> CatalogTable:
    return CatalogTable(path=path, columns=(Column(name="a", type=INT),), options={}, temporary=temporary)


def view(path: ObjectPath, *, temporary: bool = False) -> CatalogView:
    return CatalogView(path=path, text="SELECT 1", temporary=temporary)


@pytest.fixture
def manager() -> CatalogManager:
    return CatalogManager()


def test_names_are_completed_from_the_current_database(manager: CatalogManager) -> None:
    manager.create_catalog("c", {"type": "generic_in_memory", "default-database": "d"})
    assert manager.qualify(("t",)) == ObjectPath("default_catalog", "default_database", "t")
    manager.use_catalog("c")
    assert manager.qualify(("t",)) == ObjectPath("c", "d", "t")
    assert manager.qualify(("x", "t")) == ObjectPath("c", "x", "t")
    assert manager.qualify_database(("x",)) == ("c", "x")
    with pytest.raises(ValidationError, match="one to three parts"):
        manager.qualify(("a", "b", "c", "d"))


def test_temporary_objects_shadow_and_uncover(manager: CatalogManager) -> None:
    path = manager.qualify(("t",))
    permanent, temporary = table(path), table(path, temporary=True)
    manager.create(permanent)
    manager.create(temporary)
    assert manager.find(path) is temporary
    assert manager.paths("default_catalog", "default_database") == [path]
    with pytest.raises(ValidationError, match=r"Temporary table with identifier .* exists. Drop it first"):
        manager.drop(path, view=False, temporary=False, ignore_if_missing=False)
    manager.drop(path, view=False, temporary=True, ignore_if_missing=False)
    assert manager.find(path) is permanent


def test_a_taken_name_is_refused_or_ignored(manager: CatalogManager) -> None:
    path = manager.qualify(("t",))
    manager.create(table(path))
    assert manager.create(view(path), ignore_if_exists=True) is False
    message = r"Table \(or view\) default_database.t already exists in Catalog default_catalog\."
    with pytest.raises(ValidationError, match=message):
        manager.create(view(path))


def test_drop_wants_the_right_kind_and_says_which(manager: CatalogManager) -> None:
    path = manager.qualify(("v",))
    manager.create(view(path))
    with pytest.raises(ValidationError, match="Table with identifier") as caught:
        manager.drop(path, view=False, temporary=False, ignore_if_missing=False)
    assert "use DROP VIEW" in caught.value.hint
    manager.drop(path, view=False, temporary=False, ignore_if_missing=True)
    assert manager.find(path) is not None


def test_rename_keeps_the_table_and_refuses_taken_names(manager: CatalogManager) -> None:
    old, taken = manager.qualify(("a",)), manager.qualify(("b",))
    manager.create(table(old))
    manager.create(table(taken))
    with pytest.raises(ValidationError, match="already exists"):
        manager.rename(old, "b")
    manager.rename(old, "c")
    assert manager.find(old) is None
    moved = manager.find(manager.qualify(("c",)))
    assert moved is not None
    assert moved.path.name == "c"


def test_what_is_in_use_or_not_empty_stays(manager: CatalogManager) -> None:
    with pytest.raises(ValidationError, match="catalog which is currently in use"):
        manager.drop_catalog("default_catalog", ignore_if_missing=False)
    with pytest.raises(ValidationError, match="database which is currently in use"):
        manager.drop_database("default_catalog", "default_database", ignore_if_missing=False, cascade=True)
    manager.create_catalog("c", {"type": "generic_in_memory"})
    manager.create(table(ObjectPath("c", "default", "t")))
    with pytest.raises(ValidationError, match="Database default in catalog c is not empty"):
        manager.drop_database("c", "default", ignore_if_missing=False, cascade=False)
    manager.drop_database("c", "default", ignore_if_missing=False, cascade=True)
    assert manager.catalog("c").databases == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "do not contain an option key 'type'"),
        ({"type": "hive"}, "Could not find any factory for identifier 'hive'"),
        ({"type": "generic_in_memory", "colour": "red"}, "Unsupported options:\n\ncolour"),
    ],
)
def test_catalogs_of_other_kinds_are_refused(
    manager: CatalogManager, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        manager.create_catalog("c", options)


def test_the_nearest_name_is_found_whatever_its_case(manager: CatalogManager) -> None:
    manager.create(table(manager.qualify(("Orders",))))
    assert manager.nearest(("order",)) == "Orders"
    assert manager.nearest(("customers",)) == ""


def test_quoted_doubles_backquotes() -> None:
    assert quoted(ObjectPath("a", "b", "c`d")) == "`a`.`b`.`c``d`"


def test_functions_resolve_system_then_temporary_then_permanent(manager: CatalogManager) -> None:
    path = manager.qualify(("F",))
    made = {}
    for name, where, temporary in (("p", path, False), ("t", path, True), ("s", None, True)):
        made[name] = CatalogFunction(
            name="F", path=where, implementation=name, language="PYTHON", temporary=temporary
        )
        manager.functions.create(made[name], ignore_if_exists=False)
    assert manager.functions.system("f") is made["s"]
    assert manager.functions.find(path) is made["t"]
    manager.functions.drop(("F",), temporary=True, system=True, ignore_if_missing=False)
    manager.functions.drop(("F",), temporary=True, system=False, ignore_if_missing=False)
    assert manager.functions.system("f") is None
    assert manager.functions.find(path) is made["p"]
    with pytest.raises(ValidationError, match=r"Function default_database.f already exists in Catalog"):
        manager.functions.create(
            CatalogFunction(
                name="f",
                path=manager.qualify(("f",)),
                implementation="",
                language="PYTHON",
            ),
            ignore_if_exists=False,
        )
    with pytest.raises(ValidationError, match="doesn't exist"):
        manager.functions.drop(("f",), temporary=True, system=False, ignore_if_missing=False)
