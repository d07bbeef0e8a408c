"""The identity of a job, and whether stored state belongs to it.

A job takes over state that has the same meaning for it. ``fingerprint`` is the digest of all its plans:
everything that the state depends on, and nothing else (see ``physical.identities``). ``facts`` are not in the
digest, and have the words for a refusal: the time zone, the positions of columns in lines of text, versions
of functions. Records of format 3 have no facts, so these are not compared.
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
    """The job that a checkpoint belongs to. Records of earlier versions lack some fields.

    - ``fingerprint``: the digest of the whole job.
    - ``nodes``: a text of each node of its plans by the node's digest, inputs first.
    - ``operators``: the layout of state by operator id; ``rules``: the version of the rules that made the
      ids.
    - ``facts``: the facts that no digest shows.
    - ``code``: digests of users' functions by name.
    - ``former``: the ids of the jobs whose state the job has taken over, in order.
    - ``kept``: the places where its sinks, and those of earlier jobs and queries, may have kept rows.
    - ``schema``: the parts of each operator's state.
    - ``direct``: sinks that get rows without an operator between, and which rows.
    - ``since``: the first epoch after the job took its state over from another query.
    - ``whole``: the sinks have exactly the result of the query from the beginning on.
    - ``left``: the tables that only earlier queries of the job have written.
    - ``sinks``: digests of the sinks' tables; ``watermarks``: the delays of the watermarks.
    - ``query``: the INSERTs, with the objects that they name, as their session wrote them.
    - ``shown``: by sink and column the column's lineage, with a text for people.
    """

    job_id: str
    fingerprint: str
    nodes: dict[str, str]
    operators: dict[str, str]
    name: str = ""
    rules: int = RULES
    facts: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    former: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
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

    def also_kept(self, earlier: Self) -> list[str]:
        """The places of both."""
        return sorted({*self.kept, *earlier.kept})

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
        return f"its {gone} has other options, types or time-to-live than this query's"
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
