"""What an operator is, told by a digest of its meaning: kind, keys, expressions, its inputs' digests.

Equal digests mean equal rows, so equal sub-plans can be one operator, and an operator finds its own state
after a restart wherever it stands in the script. The digest is of a canonical text that this module alone
decides: it does not change with Python's hash seed, the process, how EXPLAIN prints or how expressions are
translated. A field of a node counts unless it stands at its default, so a new field with a default changes
no digest; what only says how to run or to show a node does not count (``_INCIDENTAL``), nor do nodes that
only say where rows go (``PASSING``). Changelog modes do not count either: who gets -U is settled among
the consumers. Cost: one pass over the tree.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, singledispatch
from typing import Any, ClassVar

from tidemill.catalog.table import CatalogTable
from tidemill.config.secrets import without_secrets
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.plan import nodes as n
from tidemill.types.logical import LogicalType
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.calls import BoundFunction

Node = p.PhysicalNode | b.BatchNode
DIGEST_LENGTH = 16
PASSING = (p.Exchange, p.MiniBatchAssigner, p.DropUpdateBefore)
"""They give the very rows they get."""
_LENIENCY = (".ignore-parse-errors", ".fail-on-missing-field")
"""Ends of a table's options that say what becomes of records that do not fit: a job that failed at one may go
on with another answer. A hint that says otherwise than the table tells two scans of a job apart."""
_ASKING = "lookup."
"""Options that say how a table is asked by key, and what is kept of its answers."""
_INCIDENTAL: dict[type, frozenset[str]] = {
    p.PhysicalNode: frozenset({"traits"}),
    p.TableSourceScan: frozenset({"options", "filters", "projected"}),
    p.Rank: frozenset({"upsert_key", "insert_only"}),
    p.SortLimit: frozenset({"upsert_key"}),
    p.OverAggregate: frozenset({"time"}),
    p.WindowAggregate: frozenset({"split"}),
    p.Join: frozenset({"ttl_hints", "overwrites"}),
    p.LookupJoin: frozenset({"options", "retry", "overwrites"}),
    p.ToChangelog: frozenset({"call"}),
    p.FromChangelog: frozenset({"call"}),
    p.Sink: frozenset({"options", "consumed", "retract", "materialize"}),
    b.BatchNode: frozenset({"most"}),
    n.WindowTableFunction: frozenset({"input", "position"}),
    n.MatchRecognize: frozenset({"input"}),
    # A user's function is its name and its types: its code may be mended without losing what it counted.
    # Its version is compared beside the digests (see ``runtime.job_facts``).
    BoundFunction: frozenset({"body", "version"}),
    BoundAggregate: frozenset({"body", "version"}),
}


@dataclass(slots=True)
class Digests:
    """Digests of the nodes of one job's plans, each computed once. ``named``: names of results count."""

    named: ClassVar[bool] = True
    _known: dict[int, tuple[Node, str]] = field(default_factory=dict)

    def of(self, node: Node) -> str:
        """Hex digits that tell ``node`` and all below it from every other plan."""
        while isinstance(node, PASSING):
            node = node.input
        known = self._known.get(id(node))
        if known is None or known[0] is not node:
            # The node is kept with its digest: an id is good only as long as its object lives.
            known = self._known[id(node)] = (node, hashed(self._text(node)))
        return known[1]

    def table(self, table: CatalogTable, options: Mapping[str, str]) -> str:
        """As ``table_digest``."""
        return table_digest(table, options)

    def _text(self, node: Node) -> str:
        if isinstance(node, p.GroupAggregate):
            parts = [canonical(x) for x in (node.fields, node.keys, node.calls, node.state_ttl)]
            parts += ["versions"] * node.versions
            return joined("GroupAggregate", [*parts, self.of(node.input)])
        inputs = {id(i) for i in node.inputs}
        parts = []
        for f in telling(node):
            value = getattr(node, f.name)
            below = value if isinstance(value, tuple) else (value,)
            if below and all(id(x) in inputs for x in below):
                parts.append(f"{f.name}={[self.of(i) for i in below]}")
            else:
                parts.append(f"{f.name}={canonical(value)}")
        return joined(type(node).__name__, [*parts, *_place(node)])


def table_digest(table: CatalogTable, options: Mapping[str, str]) -> str:
    """What a table is read from: its path in the catalog and where its options say that it is."""
    return hashed(_table_text(table, options))


def job_digest(digests: list[str]) -> str:
    """The digest of a job of these parts, in whatever order they were written."""
    return hashed(joined("Job", sorted(digests)))


def _place(node: Node) -> list[str]:
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
    said = {k: v for k, v in without_secrets(options).items() if k not in lenient}
    return joined("Table", [canonical(str(table.path)), canonical(said)])


def telling(value: object) -> list[Field[object]]:
    """The fields of a dataclass that say what it means, by name."""
    known = _meaningful(type(value))  # type: ignore[arg-type]  # takes its instances' hash for its own
    return [f for f in known if not _is_default(f, getattr(value, f.name))]


@cache
def _meaningful(kind: Any) -> tuple[Field[object], ...]:
    """The fields of a dataclass, by name, but for the incidental ones."""
    incidental = {name for each in kind.__mro__ for name in _INCIDENTAL.get(each, ())}
    found = (f for f in fields(kind) if f.name not in incidental)
    return tuple(sorted(found, key=lambda f: f.name))


def _is_default(f: Field[object], value: object) -> bool:
    return f.default is not MISSING and type(f.default) is type(value) and f.default == value


def joined(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(parts)})"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


@singledispatch
def canonical(value: object) -> str:
    """The one text of a part of a plan, in every process: equal iff the parts mean the same.

    TypeError for what has no text but where it lies in memory, as code has."""
    if is_dataclass(value):
        parts = [f"{f.name}={canonical(getattr(value, f.name))}" for f in telling(value)]
        return joined(type(value).__name__, parts)
    if isinstance(value, int | float):
        return repr(value)
    if callable(value) or type(value).__repr__ is object.__repr__:
        raise TypeError(f"{value} is no part of a plan that has a text")
    return f"{type(value).__name__}:{json.dumps(str(value))}"


def has_text(value: object) -> bool:
    """Whether ``canonical`` has a text of its own for values of this type, and does not go by fields."""
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
