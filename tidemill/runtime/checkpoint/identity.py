"""Who a job is, and whether what is stored is its own.

A job takes up state that means the same to it. ``fingerprint`` is the digest of all its plans: what the state
depends on, and nothing else (see ``physical.identities``). ``facts`` are what a digest does not show, each
with the words that a refusal needs: the time zone, the place of columns in lines of text, versions of
functions. Records of format 3 have no facts: there is nothing to compare then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemill.errors import StateError
from tidemill.physical.identities import RULES
from tidemill.user_functions.code import same_code


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """What a checkpoint belongs to. ``fingerprint`` is the whole job's digest, ``nodes`` what each node of
    its plans is by its digest, inputs first, ``operators`` how their state is laid out by operator id,
    ``rules`` by which the ids were made, ``code`` what the users' functions were by name,
    ``former`` the ids of the jobs whose state it has taken up, one after the other."""

    job_id: str
    fingerprint: str
    nodes: dict[str, str]
    operators: dict[str, str]
    name: str = ""
    rules: int = RULES
    facts: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    former: list[str] = field(default_factory=list)


def check_same(stored: JobIdentity, wanted: JobIdentity, what: str, *, part: bool = False) -> None:
    """StateError that names ``what`` ("the savepoint 'x'") and the reason where it is another query's.
    ``part``: the query may be a part of the stored one."""
    why = _lost_part(stored, wanted) if part else _difference(stored, wanted)
    if why:
        is_part = not part and not _lost_part(stored, wanted)
        raise StateError(
            f"{what[0].upper()}{what[1:]} belongs to another query ({why})", hint=_PART if is_part else _OTHER
        )


_OTHER = "Run the query that made it, or start this one in a new directory, without a savepoint."
_PART = (
    "The query is a part of the one that made it. Start it in a new directory with this as the savepoint and"
    " 'execution.state-recovery.ignore-unclaimed-state' = 'true': state that it does not need is left out."
)


def changed_functions(stored: JobIdentity, wanted: JobIdentity) -> list[str]:
    """The functions whose code is another one than when the state was made; their versions are the same."""
    return sorted(
        name for name, code in wanted.code.items() if not same_code(stored.code.get(name, code), code)
    )


def _difference(stored: JobIdentity, wanted: JobIdentity) -> str:
    """Names the lowest node that differs: all above it differ with it. '' for none."""
    if (stored.fingerprint, stored.operators) == (wanted.fingerprint, wanted.operators):
        return _changed_fact(stored, wanted)
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


def _lost_part(stored: JobIdentity, wanted: JobIdentity) -> str:
    """What ``wanted`` has that ``stored`` lacks; '' for nothing."""
    new = next((text for key, text in wanted.nodes.items() if key not in stored.nodes), "")
    if new:
        return f"it lacks {new}"
    changed = [key for key, layout in wanted.operators.items() if stored.operators.get(key) != layout]
    if changed:
        return f"the state of {', '.join(changed)} is laid out in another way"
    return _changed_fact(stored, wanted)


def _changed_fact(stored: JobIdentity, wanted: JobIdentity) -> str:
    for fact, value in stored.facts.items():
        now = wanted.facts.get(fact, value)
        if now != value:
            return f"{fact}: {value} then, {now} now"
    return ""
