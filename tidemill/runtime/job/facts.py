"""What the state of a job depends on beyond its plan's digest, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.formats.registry import find_format, identifiers
from tidemill.functions import datetime_now, datetime_text
from tidemill.physical import nodes as p
from tidemill.physical.nodes import Traits
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call
from tidemill.types.logical import LogicalType
from tidemill.user_functions.aggregates import BoundAggregate
from tidemill.user_functions.calls import BoundFunction
from tidemill.user_functions.code import code_digest

_BY_ZONE = frozenset(f.name for f in (*datetime_now.FUNCTIONS, *datetime_text.FUNCTIONS))
"""Functions that may read the session's time zone though no TIMESTAMP_LTZ is near."""
_FILES, _FOLDER = "filesystem", "in the name of a folder"
"""The connector that reads partition columns from the names of folders."""
_FORMAT_KEYS = ("format", "value.format", "key.format")


def job_facts(roots: Sequence[p.PhysicalNode], zone: str) -> dict[str, str]:
    """By what each fact is called in a refusal: its value."""
    facts: dict[str, str] = {}
    for root in roots:
        for node in walk(root):
            if isinstance(node, p.TableSourceScan):
                facts |= _places(node)
            for part in _parts(node):
                if _reads_zone(part):
                    facts["the time zone"] = zone
                elif isinstance(part, BoundFunction | BoundAggregate):
                    facts[f"the version of function {part.name}"] = part.version or "none"
    return facts


def function_code(roots: Sequence[p.PhysicalNode]) -> dict[str, str]:
    """A digest of the code of each of the users' functions."""
    found: dict[str, str] = {}
    for root in roots:
        for node in walk(root):
            for part in _parts(node):
                if isinstance(part, BoundFunction | BoundAggregate):
                    found[part.name] = code_digest(part.body)
    return found


def _places(scan: p.TableSourceScan) -> dict[str, str]:
    """Where each column that is read is found: in the name of a folder, or at its place if the format is
    positional. Other scans of the table may read others."""
    options = dict(scan.options)
    named = [options[key] for key in _FORMAT_KEYS if options.get(key) in identifiers()]
    is_positional = any(find_format(name).is_positional for name in named)
    in_folders = scan.table.partitioned_by if options.get("connector") == _FILES else ()
    names = [c.name for c in scan.table.physical_columns if c.name not in scan.table.partitioned_by]
    places = dict.fromkeys(in_folders, _FOLDER)
    if is_positional:
        places |= {c: str(place) for place, c in enumerate(names, 1)}
    elif options.get("connector") == _FILES:
        places |= dict.fromkeys(names, "in the file")
    read = [c for c in scan.columns if c in places]
    return {f"the place of column {c} of table {scan.table.path}": places[c] for c in read}


def _reads_zone(part: object) -> bool:
    if isinstance(part, LogicalType):
        return "TIMESTAMP_LTZ" in str(part)
    return isinstance(part, Call) and part.function in _BY_ZONE


def _parts(node: p.PhysicalNode) -> Iterator[object]:
    """All that a node is made of: expressions, types, functions; not its inputs, and not recursive, as
    expressions may be deep."""
    waiting: list[object] = [getattr(node, f.name) for f in fields(node)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple | list | frozenset):
            waiting += part
        elif is_dataclass(part) and not isinstance(part, p.PhysicalNode | Traits | CatalogTable):
            yield part
            if not isinstance(part, LogicalType):
                waiting += [getattr(part, f.name) for f in fields(part)]
