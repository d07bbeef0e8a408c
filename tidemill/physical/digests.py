"""Digests of operators: of their kind, keys, expressions, and their inputs' digests.

Equal digests mean equal rows. So equal sub-plans can be one operator, and after a restart an operator finds
its state wherever it is in the script. Only this module decides the text that is hashed. The text does not
depend on Python's hash seed, the process, EXPLAIN, or the translation of expressions.

A field of a node counts unless it has its default value, so a new field with a default changes no digest.
Fields that only say how to run or show a node do not count (``incidental``), nor do nodes that only route
rows (``PASSING``), nor changelog modes, which depend on the consumers. Names of fields and classes are in the
text, so renaming them changes digests. Cost: one pass over the tree.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, singledispatch
from typing import Any, ClassVar

from tidemill.catalog.table import CatalogTable
from tidemill.config.secrets import without_secrets
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall
from tidemill.types.logical import LogicalType
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.calls import BoundFunction

DIGEST_LENGTH = 16
PASSING = (p.Exchange, p.MiniBatchAssigner, p.DropUpdateBefore)
"""They pass on their input rows."""
_LENIENCY = (".ignore-parse-errors", ".fail-on-missing-field")
"""Suffixes of options for unreadable records. A job that failed at such a record may continue with another
value of the option. In hints the options count, so two scans of a job stay apart."""
_ASKING = "lookup."
"""Options of lookups by key and of their cache."""
_INCIDENTAL: dict[type, frozenset[str]] = {
    p.PhysicalNode: frozenset({"traits", "most"}),
    n.WindowTableFunction: frozenset({"input", "position"}),
    # A user's function is its name and its types: a fix of its code must not lose state.
    # Its version is compared beside the digests (see ``runtime.job.facts``).
    BoundFunction: frozenset({"body", "version"}),
    BoundAggregate: frozenset({"body", "version"}),
    AggregateCall: frozenset({"item"}),
}


def incidental(kind: type[p.PhysicalNode], *fields: str) -> None:
    """Declares fields of a node class that only say how to run or show the node."""
    _INCIDENTAL[kind] = frozenset(fields)


@singledispatch
def settled_text(node: p.PhysicalNode, text: Callable[[object], str]) -> str | None:
    """The text of ``node`` if its fields do not give it. ``text``: of a part, or the digest of an input. By
    default the fields do."""
    return None


@dataclass(slots=True)
class Digests:
    """Digests of the nodes of one job's plans, each computed once. ``named``: names of results count."""

    named: ClassVar[bool] = True
    _cache: dict[int, tuple[p.PhysicalNode, str]] = field(default_factory=dict)

    def of(self, node: p.PhysicalNode) -> str:
        """The digest, in hex, of ``node`` and all nodes below it."""
        while isinstance(node, PASSING):
            node = node.input
        cached = self._cache.get(id(node))
        if cached is None or cached[0] is not node:
            # The cache keeps the node alive: another node could get the id of a freed node.
            cached = self._cache[id(node)] = (node, hashed(self._text(node)))
        return cached[1]

    def table(self, table: CatalogTable, options: Mapping[str, str]) -> str:
        """As ``table_digest``."""
        return table_digest(table, options)

    def _text(self, node: p.PhysicalNode) -> str:
        settled = settled_text(node, self._of_part)
        if settled is not None:
            return settled
        inputs = {id(i) for i in node.inputs}
        parts = []
        for f in meaningful_fields(node):
            value = getattr(node, f.name)
            below = value if isinstance(value, tuple) else (value,)
            if below and all(id(x) in inputs for x in below):
                parts.append(f"{f.name}={[self.of(i) for i in below]}")
            else:
                parts.append(f"{f.name}={canonical(value)}")
        return joined(type(node).__name__, [*parts, *_place(node)])

    def _of_part(self, value: object) -> str:
        return self.of(value) if isinstance(value, p.PhysicalNode) else canonical(value)


def table_digest(table: CatalogTable, options: Mapping[str, str]) -> str:
    """The digest of a table: its path in the catalog, and its options without incidental ones."""
    return hashed(_table_text(table, options))


def job_digest(digests: list[str]) -> str:
    """The digest of a job of these parts, independent of their order."""
    return hashed(joined("Job", sorted(digests)))


def _place(node: p.PhysicalNode) -> list[str]:
    if isinstance(node, p.TableSourceScan):
        keys = {c.name: c.metadata_key for c in node.table.columns if c.metadata_key}
        metadata = {c: keys[c] for c in node.columns if c in keys}
        return [_table_text(node.table, dict(node.options)), canonical(metadata)]
    if isinstance(node, p.Sink | p.LookupJoin):
        return [_table_text(node.table, dict(node.options))]
    return []


def _table_text(table: CatalogTable, options: Mapping[str, str]) -> str:
    own = table.options
    lenient = {k for k, v in options.items() if k.endswith(_LENIENCY) and own.get(k) == v}
    lenient |= {k for k in options if k.startswith(_ASKING)}
    counted_options = {k: v for k, v in without_secrets(options).items() if k not in lenient}
    return joined("Table", [canonical(str(table.path)), canonical(counted_options)])


def meaningful_fields(value: object) -> list[Field[object]]:
    """The fields of a dataclass that count and have no default value, sorted by name."""
    candidates = _meaningful(type(value))  # type: ignore[arg-type]  # takes its instances' hash for its own
    return [f for f in candidates if not _is_default(f, getattr(value, f.name))]


@cache
def _meaningful(kind: Any) -> tuple[Field[object], ...]:
    """The fields of a dataclass without the incidental ones, sorted by name."""
    incidental = {name for each in kind.__mro__ for name in _INCIDENTAL.get(each, ())}
    meaningful = (f for f in fields(kind) if f.name not in incidental)
    return tuple(sorted(meaningful, key=lambda f: f.name))


def _is_default(f: Field[object], value: object) -> bool:
    return f.default is not MISSING and type(f.default) is type(value) and f.default == value


def joined(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(parts)})"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


@singledispatch
def canonical(value: object) -> str:
    """The text of a part of a plan, equal in every process iff the parts mean the same.

    TypeError if a value only has its memory address as text, as a function has."""
    if is_dataclass(value):
        parts = [f"{f.name}={canonical(getattr(value, f.name))}" for f in meaningful_fields(value)]
        return joined(type(value).__name__, parts)
    if isinstance(value, int | float):
        return repr(value)
    if callable(value) or type(value).__repr__ is object.__repr__:
        raise TypeError(f"{value} is no part of a plan that has a text")
    return f"{type(value).__name__}:{json.dumps(str(value))}"


def has_canonical_text(value: object) -> bool:
    """Whether ``canonical`` has an implementation for this type, so the fields do not matter."""
    return canonical.dispatch(type(value)) is not canonical.dispatch(object)


@canonical.register
def _(value: None) -> str:
    return "null"


@canonical.register
def _(value: str) -> str:
    return json.dumps(value)


@canonical.register
def _(value: bytes) -> str:
    return f"bytes:{value.hex()}"


@canonical.register(dt.date)
@canonical.register(dt.time)
def _(value: dt.date | dt.time) -> str:
    return f"{type(value).__name__}:{value.isoformat()}"


@canonical.register(Enum)
@canonical.register(WindowKind)
def _(value: Enum | WindowKind) -> str:
    return value.name


@canonical.register(tuple)
@canonical.register(list)
def _(value: tuple[object, ...] | list[object]) -> str:
    return f"[{', '.join(map(canonical, value))}]"


@canonical.register(frozenset)
def _(value: frozenset[object]) -> str:
    return f"{{{', '.join(sorted(map(canonical, value)))}}}"


@canonical.register(Mapping)
def _(value: Mapping[object, object]) -> str:
    return f"{{{', '.join(sorted(f'{canonical(k)}: {canonical(v)}' for k, v in value.items()))}}}"


@canonical.register
def _(value: LogicalType) -> str:
    return json.dumps(str(value))


@canonical.register
def _(value: CatalogTable) -> str:
    return canonical(str(value.path))
