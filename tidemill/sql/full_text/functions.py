"""Calls: functions by name in capitals, those with words between their arguments, JSON's, casts, OVER."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from tidemill.sql import expressions as x
from tidemill.sql.full_text.expressions import Printer
from tidemill.sql.full_text.names import Unprintable, quoted
from tidemill.sql.reserved import BARE_FUNCTIONS

Form = Callable[[Printer, exp.Expr], str]
_WORDED = {"POSITION": ("IN", "FROM"), "OVERLAY": ("PLACING", "FROM", "FOR")}
_PARTS = {unit: unit for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE", "SECOND")} | {
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "DAYOFYEAR": "DOY",
}
"""Functions that Flink writes as EXTRACT of a unit."""
_SHORT = {"CEILING": "CEIL"}
_PLAIN = re.compile("[A-Za-z_][A-Za-z_0-9]*")


def _call(printer: Printer, node: exp.Expr) -> str:
    name, arguments = node.name, node.expressions
    upper = name.upper()
    if _PLAIN.fullmatch(name) is None:
        raise Unprintable(name)
    if upper in _WORDED:
        words = ("", *(f" {word} " for word in _WORDED[upper]))
        return f"{upper}({''.join(w + printer.text(a) for w, a in zip(words, arguments, strict=False))})"
    if upper == "NULLIF" and len(arguments) == 2 and printer.rewritten:
        first, second = arguments
        tested = printer.text(exp.EQ(this=first, expression=second))
        return f"CASE WHEN {tested} THEN NULL ELSE {printer.text(first)} END"
    if upper in _PARTS and len(arguments) == 1 and printer.rewritten:
        return f"EXTRACT({_PARTS[upper]} FROM {printer.text(arguments[0])})"
    if upper in BARE_FUNCTIONS and not arguments:
        return upper
    if upper == "MOD" and len(arguments) == 2:
        return printer.text(exp.Mod(this=arguments[0], expression=arguments[1]))
    argument_list = ", ".join(_argument(printer, a) for a in arguments)
    return f"{_SHORT.get(upper, upper) if printer.rewritten else upper}({argument_list})"


def _argument(printer: Printer, node: exp.Expr) -> str:
    if isinstance(node, exp.Distinct):
        return f"DISTINCT {printer.listed(node.expressions)}"
    if isinstance(node, exp.Kwarg):
        return f"`{node.this.name}` => {printer.text(node.expression)}"
    return printer.text(node)


def _rounded(word: str) -> Form:
    return lambda printer, node: f"{word}({printer.text(node.this)} TO {node.args['to'].name})"


def _trim(printer: Printer, node: exp.Expr) -> str:
    characters = node.args.get("expression")
    blank = "' ' " if printer.rewritten else ""
    characters_text = blank if characters is None else f"{printer.text(characters)} "
    return f"TRIM({node.args['position']} {characters_text}FROM {printer.text(node.this)})"


def _cast(word: str) -> Form:
    return lambda printer, node: f"{word}({printer.text(node.this)} AS {type_text(node.args['to'])})"


def type_text(spec: exp.Expr) -> str:
    """A type as written, in capitals; types with names in them have no form here."""
    written = " ".join(str(spec.args["written"]).upper().split())
    if "ROW" in written or "`" in written:
        raise Unprintable(written)
    spaced = re.sub(r"\s*>", " >", re.sub(r"<\s*", "< ", written))
    return re.sub(r"\bINT\b", "INTEGER", spaced.replace("DOUBLE PRECISION", "DOUBLE"))


def _over(printer: Printer, node: exp.Expr) -> str:
    name = node.args.get("alias")
    if name is not None and not any(node.args.get(part) for part in ("partition_by", "order", "spec")):
        return f"{printer.text(node.this)} OVER {quoted(name.name)}"
    return f"{printer.text(node.this)} OVER ({window(printer, node)})"


def window(printer: Printer, node: exp.Expr) -> str:
    """What stands between the parentheses of OVER or WINDOW."""
    parts = []
    if node.args.get("alias") is not None:
        parts.append(quoted(node.args["alias"].name))
    if node.args.get("partition_by"):
        parts.append(f"PARTITION BY {printer.listed(node.args['partition_by'])}")
    if node.args.get("order") is not None:
        parts.append(f"ORDER BY {ordered(printer, node.args['order'].expressions)}")
    if node.args.get("spec") is not None:
        parts.append(_frame(printer, node.args["spec"]))
    return " ".join(parts)


def ordered(printer: Printer, keys: list[exp.Expr]) -> str:
    return ", ".join(printer.text(key.this) + directions(key) for key in keys)


def directions(key: exp.Expr) -> str:
    nulls = {None: "", True: " NULLS FIRST", False: " NULLS LAST"}[key.args.get("nulls_first")]
    return (" DESC" if key.args.get("desc") else "") + nulls


def _frame(printer: Printer, spec: exp.Expr) -> str:
    start, end = (_bound(printer, spec, side) for side in ("start", "end"))
    return f"{spec.args['kind']} BETWEEN {start} AND {end}"


def _bound(printer: Printer, spec: exp.Expr, side: str) -> str:
    distance, direction = spec.args[side], spec.args.get(f"{side}_side")
    distance_text = distance if isinstance(distance, str) else printer.text(distance)
    return f"{distance_text} {direction}" if direction else distance_text


def _behaviors(printer: Printer, node: exp.Expr) -> str:
    """JSON_QUERY says what it does where nothing is written."""
    text = ""
    for slot, word in (("on_empty", "EMPTY"), ("on_error", "ERROR")):
        behavior = node.args.get(slot)
        if behavior is not None:
            text += f" {behavior.args['kind']}{_default(printer, behavior)} ON {word}"
        elif isinstance(node, x.JsonQuery) and printer.rewritten:
            text += f" NULL ON {word}"
    return text


def _default(printer: Printer, behavior: exp.Expr) -> str:
    return "" if behavior.args.get("this") is None else f" {printer.text(behavior.this)}"


def _json(word: str) -> Form:
    def form(printer: Printer, node: exp.Expr) -> str:
        kind, wrapper = node.args.get("returning"), node.args.get("wrapper")
        returned = f" RETURNING {type_text(kind)}" if kind is not None else ""
        said = isinstance(node, x.JsonQuery) and (wrapper or printer.rewritten)
        wrapped = f" {_WRAPPERS[wrapper or 'WITHOUT']} ARRAY WRAPPER" if said else ""
        path = printer.text(node.args["path"])
        return f"{word}({printer.text(node.this)}, {path}{returned}{wrapped}{_behaviors(printer, node)})"

    return form


_WRAPPERS = {
    "WITHOUT": "WITHOUT",
    "CONDITIONAL": "WITH CONDITIONAL",
    "UNCONDITIONAL": "WITH UNCONDITIONAL",
}


def _json_object(printer: Printer, node: exp.Expr) -> str:
    pairs = ", ".join(
        f"KEY {printer.text(pair.this)} VALUE {printer.text(pair.expression)}" for pair in node.expressions
    )
    return f"JSON_OBJECT({pairs}{_on_null(printer, node, 'NULL')})"


def _json_array(printer: Printer, node: exp.Expr) -> str:
    return f"JSON_ARRAY({printer.listed(node.expressions)}{_on_null(printer, node, 'ABSENT')})"


def _on_null(printer: Printer, node: exp.Expr, default: str) -> str:
    word = node.args.get("on_null") or (default if printer.rewritten else "")
    return f" {word} ON NULL" if word else ""


FORMS: dict[type[exp.Expr], Form] = {
    exp.Anonymous: _call,
    exp.Extract: lambda printer, node: f"EXTRACT({node.name} FROM {printer.text(node.expression)})",
    exp.Floor: _rounded("FLOOR"),
    exp.Ceil: _rounded("CEIL"),
    exp.Trim: _trim,
    exp.Cast: _cast("CAST"),
    exp.TryCast: _cast("TRY_CAST"),
    exp.Window: _over,
    exp.Filter: lambda printer, node: (
        f"{printer.text(node.this)} FILTER (WHERE {printer.text(node.expression.this)})"
    ),
    x.JsonValue: _json("JSON_VALUE"),
    x.JsonQuery: _json("JSON_QUERY"),
    x.JsonExists: _json("JSON_EXISTS"),
    x.JsonObject: _json_object,
    x.JsonArray: _json_array,
    x.Descriptor: lambda _, node: f"DESCRIPTOR({', '.join(quoted(i.name) for i in node.expressions)})",
}
