"""Hints of a SELECT: STATE_TTL goes to the joins and the aggregate that read the named relation directly.

Hints that only choose how Flink would join (BROADCAST and the like) change no answer and are passed over; so
is MINI_BATCH, as an epoch is a bundle: a lookup join asks once an epoch and task for all its keys. LOOKUP
with a retry could change one, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from tidemill.config.option import parse_duration, parse_integer
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan.binder.scope import Scope
from tidemill.sql.expressions import FlinkHint
from tidemill.sql.positions import position_of

STRATEGIES = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "LOOKUP", "MULTI_JOIN")
TTL, LOOKUP, BUNDLE = "STATE_TTL", "LOOKUP", "MINI_BATCH"
_BUNDLE_OPTIONS: dict[str, Callable[[str], object]] = {
    "allow-latency": parse_duration,
    "size": parse_integer,
}
Hints = tuple[tuple[str, str], ...]


def state_ttl(tree: exp.Expr) -> Mapping[str, str]:
    """Durations by relation alias; ValidationError for an unknown hint or a bad duration."""
    clause = tree.args.get("hint")
    found: dict[str, str] = {}
    for hint in clause.expressions if clause is not None else ():
        name = str(hint.this).upper()
        if name == TTL and isinstance(hint, FlinkHint):
            found.update((alias, _duration(text, hint)) for alias, text in hint.options)
        elif name == BUNDLE and isinstance(hint, FlinkHint):
            _check_bundle(hint)
        elif name not in STRATEGIES:
            raise ValidationError(
                f"Hint: {name} should be registered in the HintStrategyTable",
                position=position_of(hint),
                expected=(TTL, BUNDLE, *STRATEGIES),
            )
        elif name == LOOKUP and isinstance(hint, FlinkHint):
            _check_lookup(hint)
    return found


def _check_bundle(hint: FlinkHint) -> None:
    """``MINI_BATCH('allow-latency'='5s', 'size'='10000')``: at least one of the two."""
    given = dict(hint.options)
    unknown = [key for key in given if key not in _BUNDLE_OPTIONS]
    if not given or unknown:
        said = f"Unknown option '{unknown[0]}' of hint {BUNDLE}" if unknown else f"Hint {BUNDLE} says nothing"
        raise ValidationError(said, position=position_of(hint), expected=tuple(_BUNDLE_OPTIONS))
    for key, text in given.items():
        try:
            _BUNDLE_OPTIONS[key](text)
        except ValueError as error:
            message = f"Invalid value of '{key}' in hint {BUNDLE}: {error}"
            raise ValidationError(message, position=position_of(hint)) from None


def _check_lookup(hint: FlinkHint) -> None:
    if any(key.startswith("retry") for key, _ in hint.options):
        raise NotSupportedError(
            "Hint LOOKUP with a retry of rows that are not found is not supported", position=position_of(hint)
        )


def _duration(text: str, hint: exp.Expr) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        message = f"Invalid STATE_TTL hint value: {error}"
        raise ValidationError(message, position=position_of(hint)) from None
    return text


def check_aliases(ttl: Mapping[str, str], scope: Scope, tree: exp.Expr) -> None:
    """Every alias in a hint must be a relation of the same FROM."""
    known = {r.alias for r in scope.relations}
    unknown = [alias for alias in ttl if alias not in known]
    if unknown:
        listed = "\n".join(f"`{alias}` in `{TTL}`" for alias in unknown)
        raise ValidationError(
            f"The options of following hints cannot match the name of input tables or views: \n{listed}",
            position=position_of(tree),
        )


def single(ttl: Mapping[str, str], scope: Scope) -> str | None:
    """The duration for the only relation of ``scope``; None for several, or where none is given."""
    return ttl.get(scope.relations[0].alias) if len(scope.relations) == 1 else None


def sides(ttl: Mapping[str, str], left: Scope, right: Scope) -> Hints:
    """A join's hints: LEFT and RIGHT, where that side is one named relation."""
    pairs = (("LEFT", single(ttl, left)), ("RIGHT", single(ttl, right)))
    return tuple((side, text) for side, text in pairs if text is not None)


def of_aggregate(ttl: Mapping[str, str], scope: Scope) -> Hints:
    text = single(ttl, scope)
    return () if text is None else ((scope.relations[0].alias, text),)
