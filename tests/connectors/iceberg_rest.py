"""A small Iceberg catalog with the REST protocol, for tests: a SQL catalog keeps its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from tests.connectors.json_server import Answer, json_server

Name = tuple[str, ...]
_ABSENT = {"location": None, "partition-spec": None, "write-order": None}
_STATUS: dict[type[Exception], int] = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    NamespaceNotEmptyError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
    TableAlreadyExistsError: 409,
}


@dataclass(slots=True, kw_only=True)
class RestCatalog:
    """``token``: what it wants, '' for nothing; ``lost``: how many of the next commits are done and answered
    with 504; ``down``: whether it answers 503."""

    tables: SqlCatalog
    url: str = ""
    token: str = ""
    lost: int = 0
    down: bool = False
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, authorization: str, body: Any) -> Answer:
        self.requests.append(f"{method} {path}")
        if self.down:
            return 503, _error("ServiceUnavailableException", "down", 503)
        if self.token and authorization != f"Bearer {self.token}":
            return 401, _error("NotAuthorizedException", "no such token", 401)
        try:
            return self._answer(method, path.partition("?")[0].removeprefix("/v1/").split("/"), body)
        except tuple(_STATUS) as e:
            status = _STATUS[type(e)]
            return status, _error(type(e).__name__, str(e), status)

    def _answer(self, method: str, parts: list[str], body: Any) -> Answer:
        match parts:
            case ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case ["namespaces"] | ["namespaces", _]:
                return self._namespace(method, tuple(parts[1:]), body)
            case ["tables", "rename"]:
                self.tables.rename_table(_name(body["source"]), _name(body["destination"]))
                return 204, {}
            case ["namespaces", space, "tables"] if method == "GET":
                found = self.tables.list_tables((space,))
                return 200, {"identifiers": [{"namespace": name[:-1], "name": name[-1]} for name in found]}
            case ["namespaces", space, "tables"]:
                return 200, self._created((space,), CreateTableRequest.model_validate({**_ABSENT, **body}))
            case ["namespaces", space, "tables", table]:
                return self._table(method, (space, table), body)
        return 404, _error("NoSuchEndpoint", "/".join(parts), 404)

    def _namespace(self, method: str, name: Name, body: Any) -> Answer:
        if method == "POST":
            self.tables.create_namespace(tuple(body["namespace"]), body["properties"])
            return 200, {"namespace": body["namespace"], "properties": body["properties"]}
        if not name:
            return 200, {"namespaces": self.tables.list_namespaces()}
        if method == "DELETE":
            self.tables.drop_namespace(name)
            return 204, {}
        return 200, {"namespace": name, "properties": self.tables.load_namespace_properties(name)}

    def _created(self, space: Name, asked: CreateTableRequest) -> dict[str, Any]:
        make: Callable[..., Any]
        make = self.tables.create_table_transaction if asked.stage_create else self.tables.create_table
        made = make(
            (*space, asked.name),
            asked.table_schema,
            asked.location,
            asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            asked.write_order or UNSORTED_SORT_ORDER,
            asked.properties,
        )
        return _loaded(made._table if asked.stage_create else made)

    def _table(self, method: str, name: Name, body: Any) -> Answer:
        if method == "DELETE":
            self.tables.drop_table(name)
            return 204, {}
        if method != "POST":
            return 200, _loaded(self.tables.load_table(name))
        asked = CommitTableRequest.model_validate(body)
        named: Any = SimpleNamespace(name=lambda: name)
        done = self.tables.commit_table(named, asked.requirements, asked.updates)
        if self.lost:
            self.lost -= 1
            return 504, _error("GatewayTimeout", "no answer", 504)
        return 200, json.loads(done.model_dump_json(by_alias=True))


def _name(asked: dict[str, Any]) -> Name:
    return (*asked["namespace"], asked["name"])


def _loaded(table: Any) -> dict[str, Any]:
    found = TableResponse.model_validate(
        {"metadata-location": table.metadata_location, "metadata": table.metadata}
    )
    answer: dict[str, Any] = json.loads(found.model_dump_json(by_alias=True))
    return answer


def _error(kind: str, message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code}}


@contextmanager
def rest_catalog(folder: Path) -> Iterator[RestCatalog]:
    """Its tables lie below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    where = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = RestCatalog(tables=SqlCatalog("behind", **where))

    try:
        with json_server(catalog.answer) as catalog.url:
            yield catalog
    finally:
        catalog.tables.close()
