"""Who a job is, and whether what is stored is its own.

A job takes up state that means the same to it. ``fingerprint`` is the digest of all its plans: what the state
depends on, and nothing else (see ``physical.identities``). ``facts`` are what a digest does not show, each
with the words that a refusal needs: the time zone, the place of columns in lines of text, versions of
functions. Records of format 3 have no facts: there is nothing to compare then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from tidemill.physical.identities import RULES
from tidemill.runtime.checkpoint.operator_schema import OperatorSchema
from tidemill.user_functions.code import same_code

_SINKS = "table.exec.sink."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """What a checkpoint belongs to. ``fingerprint`` is the whole job's digest, ``nodes`` what each node of
    its plans is by its digest, inputs first, ``operators`` how their state is laid out by operator id,
    ``rules`` by which the ids were made, ``code`` what the users' functions were by name,
    ``former`` the ids of the jobs whose state it has taken up, one after the other, ``schema`` what the
    state of each operator is made of, ``direct`` sinks that get rows without an operator between, and which
    rows, ``since`` the first epoch after it took the state over from another query, ``whole`` whether its
    sinks have what the query gives from the beginning on, and nothing of another one, ``left`` the tables
    that only earlier queries of it have written, ``sinks`` digests of its sinks' tables, ``watermarks`` how
    long they wait, ``query`` the INSERTs with what they name, as the session that gave them has written
    them, ``shown`` by sink and column what it shows, as its lineage with the words for people; records of
    earlier versions have none."""

    job_id: str
    fingerprint: str
    nodes: dict[str, str]
    operators: dict[str, str]
    name: str = ""
    rules: int = RULES
    facts: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    former: list[str] = field(default_factory=list)
    schema: dict[str, OperatorSchema] = field(default_factory=dict)
    direct: list[list[str]] = field(default_factory=list)
    since: int = 0
    whole: bool = True
    left: list[str] = field(default_factory=list)
    sinks: list[str] = field(default_factory=list)
    watermarks: list[str] = field(default_factory=list)
    query: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """KeyError or TypeError if ``data`` is none."""
        schema = {key: OperatorSchema.from_json(found) for key, found in data.get("schema", {}).items()}
        return cls(**{"whole": not data.get("since"), **data, "schema": schema})

    def has_same_results(self, other: Self) -> bool:
        """Of two queries that may have the same state: whether their sinks have the same rows, as far as is
        recorded."""
        if self.sinks and self.sinks != other.sinks:
            return False
        return not self.query or (self.watermarks, self._enforced) == (other.watermarks, other._enforced)

    @property
    def _enforced(self) -> dict[str, str]:
        """The options that say what becomes of rows that a sink's constraints forbid."""
        options = self.query.get("options", {})
        return {key: value for key, value in options.items() if key.startswith(_SINKS)}

    def described(self, operator: str) -> str:
        """What the operator of this id is, as EXPLAIN has it; the id if no record says."""
        schema = self.schema.get(operator)
        if schema is not None and schema.text:
            return schema.text
        return next((text for digest, text in self.nodes.items() if digest in operator), operator)


def changed_functions(stored: JobIdentity, wanted: JobIdentity) -> list[str]:
    """The functions whose code is another one than when the state was made; their versions are the same."""
    return sorted(
        name for name, code in wanted.code.items() if not same_code(stored.code.get(name, code), code)
    )


def difference(stored: JobIdentity, wanted: JobIdentity) -> str:
    """Names the lowest node that differs: all above it differ with it. '' for none."""
    if (stored.fingerprint, stored.operators) == (wanted.fingerprint, wanted.operators):
        return changed_fact(stored, wanted)
    gone = next((text for key, text in stored.nodes.items() if key not in wanted.nodes), "")
    new = next((text for key, text in wanted.nodes.items() if key not in stored.nodes), "")
    if gone and gone == new:
        return f"its {gone} has other options or types than this query's"
    if gone and new:
        return f"it has {gone} where this query has {new}"
    if gone or new:
        return f"it has {gone}, which this query lacks" if gone else f"it lacks {new}"
    changed = [key for key in stored.operators if stored.operators[key] != wanted.operators.get(key)]
    return f"the state of {', '.join(changed)} is laid out in another way" if changed else "its parts repeat"


def lost_part(stored: JobIdentity, wanted: JobIdentity) -> str:
    """What ``wanted`` has that ``stored`` lacks; '' for nothing."""
    new = next((text for key, text in wanted.nodes.items() if key not in stored.nodes), "")
    if new:
        return f"it lacks {new}"
    changed = [key for key, layout in wanted.operators.items() if stored.operators.get(key) != layout]
    if changed:
        return f"the state of {', '.join(changed)} is laid out in another way"
    return changed_fact(stored, wanted)


def changed_fact(stored: JobIdentity, wanted: JobIdentity) -> str:
    for fact, value in stored.facts.items():
        now = wanted.facts.get(fact, value)
        if now != value:
            return f"{fact}: {value} then, {now} now"
    return ""
