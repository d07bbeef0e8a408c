"""Hints of a SELECT.

- STATE_TTL applies to the joins and the aggregate that read the named relation directly.
- Join strategies, such as BROADCAST, apply to joins with the named relation as a side. They change no answer
  and matter only in batch mode.
- LOOKUP applies to the lookup join with the named table, under its name in FROM.
- MINI_BATCH applies to the SELECT's projection, and through it to the whole statement, because an epoch is
  one bundle for all operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from tidemill.config.option import Duration, parse_boolean, parse_duration, parse_integer
from tidemill.connectors.lookup.options import Retry
from tidemill.errors import ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.scope import Scope
from tidemill.sql.expressions import FlinkHint
from tidemill.sql.positions import position_of

STRATEGIES = (*n.JOIN_STRATEGIES, "LOOKUP", "MULTI_JOIN")
TTL, LOOKUP, BUNDLE = "STATE_TTL", "LOOKUP", "MINI_BATCH"


def _one_of(*choices: str) -> Callable[[str], object]:
    def read(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return text.lower()

    return read


def _positive(read: Callable[[str], Any]) -> Callable[[str], object]:
    def checked(text: str) -> Any:
        value = read(text)
        if (value.milliseconds if isinstance(value, Duration) else value) <= 0:
            raise ValueError("it must be greater than 0")
        return value

    return checked


_BUNDLE_OPTIONS: dict[str, Callable[[str], object]] = {
    "allow-latency": _positive(parse_duration),
    "size": _positive(parse_integer),
}
_RETRY: dict[str, Callable[[str], object]] = {
    "retry-predicate": _one_of("lookup_miss"),
    "retry-strategy": _one_of("fixed_delay"),
    "fixed-delay": parse_duration,
    "max-attempts": _positive(parse_integer),
}
_LOOKUP_OPTIONS: dict[str, Callable[[str], object]] = {
    "table": str,
    "async": parse_boolean,
    "output-mode": _one_of("ordered", "allow_unordered"),
    "capacity": _positive(parse_integer),
    "timeout": _positive(parse_duration),
    "shuffle": parse_boolean,
    **_RETRY,
}
"""The asynchronous options and the shuffle change nothing: a lookup join asks for all keys of an epoch at
once."""
Hints = tuple[tuple[str, str], ...]


def state_ttl(tree: exp.Expr) -> Mapping[str, str]:
    """Durations by relation alias; ValidationError for an unknown hint or a bad duration."""
    clause = tree.args.get("hint")
    durations: dict[str, str] = {}
    for hint in clause.expressions if clause is not None else ():
        name = str(hint.this).upper()
        if name == TTL and isinstance(hint, FlinkHint):
            durations.update((alias, _duration(text, hint)) for alias, text in hint.options)
        elif name == BUNDLE and isinstance(hint, FlinkHint):
            _check_bundle(hint)
        elif name not in STRATEGIES:
            raise ValidationError(
                f"Hint: {name} should be registered in the HintStrategyTable",
                position=position_of(hint),
                expected=(TTL, BUNDLE, *STRATEGIES),
            )
        elif name == LOOKUP:
            _check_lookup(hint)
    return durations


def _check_bundle(hint: FlinkHint) -> None:
    """``MINI_BATCH('allow-latency'='5s', 'size'='10000')`` needs at least one of the two options."""
    options = dict(hint.options)
    unknown = [key for key in options if key not in _BUNDLE_OPTIONS]
    if not options or unknown:
        reason = (
            f"Unknown option '{unknown[0]}' of hint {BUNDLE}" if unknown else f"Hint {BUNDLE} says nothing"
        )
        raise ValidationError(reason, position=position_of(hint), expected=tuple(_BUNDLE_OPTIONS))
    for key, text in options.items():
        try:
            _BUNDLE_OPTIONS[key](text)
        except ValueError as error:
            message = f"Invalid value of '{key}' in hint {BUNDLE}: {error}"
            raise ValidationError(message, position=position_of(hint)) from None


def bundle_of(tree: exp.Expr) -> n.Bundle | None:
    """The bundle that the MINI_BATCH hint of a SELECT configures."""
    clause = tree.args.get("hint")
    for hint in clause.expressions if clause is not None else ():
        if isinstance(hint, FlinkHint) and hint.name.upper() == BUNDLE:
            options = dict(hint.options)
            latency, size = (options.get(key) for key in _BUNDLE_OPTIONS)
            return n.Bundle(
                latency=None if latency is None else parse_duration(latency).milliseconds,
                size=None if size is None else int(size),
            )
    return None


def _check_lookup(hint: exp.Expr) -> None:
    """``LOOKUP('table'='d', ...)``: known options with valid values; the retry options all or none."""
    if not isinstance(hint, FlinkHint) or hint.arguments:
        raise ValidationError(
            f"Invalid list options in {LOOKUP} hint, only support key-value options.",
            position=position_of(hint),
        )
    options = dict(hint.options)
    if "table" not in options:
        raise _bad_lookup(
            "incomplete required option(s): [Key: 'table', default: null (fallback keys: [])]", hint
        )
    unknown = [key for key in options if key not in _LOOKUP_OPTIONS]
    if unknown:
        raise ValidationError(
            f"Unknown option '{unknown[0]}' of hint {LOOKUP}",
            position=position_of(hint),
            expected=tuple(_LOOKUP_OPTIONS),
        )
    for key, text in options.items():
        try:
            _LOOKUP_OPTIONS[key](text)
        except ValueError as error:
            raise _bad_lookup(f"'{text}' of '{key}': {error}", hint) from None
    retry = [key for key in _RETRY if key in options]
    if retry and len(retry) < len(_RETRY):
        raise _bad_lookup("retry options can be both null or all not null", hint)


def _bad_lookup(reason: str, hint: FlinkHint) -> ValidationError:
    return ValidationError(f"Invalid {LOOKUP} hint: {reason}", position=position_of(hint))


def retry_of(join: exp.Expr, name: str) -> Retry | None:
    """The retry that a LOOKUP hint of the SELECT around ``join`` configures for the table ``name``."""
    select = join.parent_select
    clause = None if select is None else select.args.get("hint")
    for hint in clause.expressions if clause is not None else ():
        options = dict(hint.options) if isinstance(hint, FlinkHint) and hint.name.upper() == LOOKUP else {}
        if options.get("table") == name and "max-attempts" in options:
            delay = parse_duration(options["fixed-delay"]).seconds
            return Retry(delay=delay, attempts=int(options["max-attempts"]))
    return None


def _duration(text: str, hint: exp.Expr) -> str:
    try:
        parse_duration(text)
    except ValueError as error:
        message = f"Invalid STATE_TTL hint value: {error}"
        raise ValidationError(message, position=position_of(hint)) from None
    return text


def strategies(tree: exp.Expr) -> Hints:
    """The join hints of a SELECT: (strategy, alias) in their order."""
    return tuple((h.name.upper(), alias) for h in _join_hints(tree) for alias in h.arguments)


def _join_hints(tree: exp.Expr) -> list[FlinkHint]:
    clause = tree.args.get("hint")
    select_hints = clause.expressions if clause is not None else ()
    return [h for h in select_hints if isinstance(h, FlinkHint) and h.name.upper() in n.JOIN_STRATEGIES]


def strategies_by_side(hints: Hints, left: Scope, right: Scope) -> Hints:
    """The strategies of ``hints`` for a join of ``left`` and ``right``: (strategy, side)."""
    aliases = {
        scope.relations[0].alias: side
        for side, scope in (("LEFT", left), ("RIGHT", right))
        if len(scope.relations) == 1
    }
    return tuple((strategy, aliases[alias]) for strategy, alias in hints if alias in aliases)


def check_aliases(ttl: Mapping[str, str], scope: Scope, tree: exp.Expr) -> None:
    """Every alias in a hint must name a relation of the same FROM. A join hint needs a join."""
    aliases = {r.alias for r in scope.relations}
    named = [(alias, TTL) for alias in ttl]
    if len(scope.relations) > 1:
        named += [(alias, LOOKUP) for alias in _lookup_tables(tree)]
        named += [(alias, strategy) for strategy, alias in strategies(tree)]
        _check_named(tree)
    unknown = [(alias, hint) for alias, hint in named if alias not in aliases]
    if unknown:
        listed = "\n".join(f"`{alias}` in `{hint}`" for alias, hint in unknown)
        raise ValidationError(
            f"The options of following hints cannot match the name of input tables or views: \n{listed}",
            position=position_of(tree),
        )


def _check_named(tree: exp.Expr) -> None:
    for hint in _join_hints(tree):
        if not hint.arguments:
            name = hint.name.upper()
            raise ValidationError(
                f"Invalid hint: {name}, expecting at least one table or view specified in hint {name}.",
                position=position_of(hint),
            )


def _lookup_tables(tree: exp.Expr) -> list[str]:
    """The tables that LOOKUP hints name."""
    clause = tree.args.get("hint")
    select_hints = clause.expressions if clause is not None else ()
    hints = [h for h in select_hints if isinstance(h, FlinkHint) and h.name.upper() == LOOKUP]
    return [text for h in hints for key, text in h.options if key == "table"]


def single_ttl(ttl: Mapping[str, str], scope: Scope) -> str | None:
    """The duration for the only relation of ``scope``. None if there are several, or without a hint."""
    return ttl.get(scope.relations[0].alias) if len(scope.relations) == 1 else None


def ttl_by_side(ttl: Mapping[str, str], left: Scope, right: Scope) -> Hints:
    """A join's durations for LEFT and RIGHT. Only a side that is one named relation has a duration."""
    pairs = (("LEFT", single_ttl(ttl, left)), ("RIGHT", single_ttl(ttl, right)))
    return tuple((side, text) for side, text in pairs if text is not None)


def aggregate_ttl(ttl: Mapping[str, str], scope: Scope) -> Hints:
    text = single_ttl(ttl, scope)
    return () if text is None else ((scope.relations[0].alias, text),)
