"""The JSON functions, whose arguments carry RETURNING, ON EMPTY, ON ERROR, WRAPPER and ON NULL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from tidemill.sql import expressions as x
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.expressions.windows import Windows
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.grammar.types import Types
from tidemill.sql.positions import place

_VALUE_BEHAVIORS = ("NULL", "ERROR", "DEFAULT")
_QUERY_BEHAVIORS = ("NULL", "ERROR", "EMPTY")
_EXISTS_BEHAVIORS = ("TRUE", "FALSE", "UNKNOWN", "ERROR")


@dataclass(frozen=True, slots=True)
class JsonFunctions:
    cursor: Cursor
    nested: Nested
    types: Types
    ordering: Ordering
    windows: Windows

    def read(self, name: str) -> exp.Expression:
        """What stands behind ``name``, one of NAMES."""
        return self._FORMS[name](self)

    def _value(self) -> exp.Expression:
        this, path = self._input_and_path()
        returning = self.types.spec() if self.cursor.take("RETURNING") else None
        behaviors = self._behaviors(_VALUE_BEHAVIORS)
        self.cursor.expect(")")
        return x.JsonValue(this=this, path=path, returning=returning, **behaviors)

    def _query(self) -> exp.Expression:
        this, path = self._input_and_path()
        returning = self.types.spec() if self.cursor.take("RETURNING") else None
        wrapper = self._wrapper()
        behaviors = self._behaviors(_QUERY_BEHAVIORS)
        self.cursor.expect(")")
        return x.JsonQuery(this=this, path=path, returning=returning, wrapper=wrapper, **behaviors)

    def _exists(self) -> exp.Expression:
        this, path = self._input_and_path()
        behaviors = self._behaviors(_EXISTS_BEHAVIORS)
        self.cursor.expect(")")
        return x.JsonExists(this=this, path=path, on_error=behaviors.get("on_error"))

    def _input_and_path(self) -> tuple[exp.Expression, exp.Expression]:
        self.cursor.expect("(")
        this = self._input()
        self.cursor.expect(",")
        return this, self.nested.expression()

    def _input(self) -> exp.Expression:
        """A value, with FORMAT JSON in a node that no binder takes: Flink has no function for it either."""
        value = self.nested.expression()
        token = self.cursor.current
        return place(exp.FormatJson(this=value), token) if self.cursor.take("FORMAT", "JSON") else value

    def _behaviors(self, allowed: tuple[str, ...]) -> dict[str, x.JsonBehavior]:
        """``<behavior> ON EMPTY <behavior> ON ERROR``, each at most once."""
        behaviors: dict[str, x.JsonBehavior] = {}
        while self.cursor.at_any(*allowed):
            behavior = self._behavior()
            self.cursor.expect("ON")
            slot = "on_" + self.cursor.expect_any("EMPTY", "ERROR").lower()
            if slot in behaviors:
                self.cursor.fail(")")
            behaviors[slot] = behavior
        return behaviors

    def _behavior(self) -> x.JsonBehavior:
        token = self.cursor.advance()
        if token.upper == "DEFAULT":
            return place(x.JsonBehavior(kind="DEFAULT", this=self.nested.expression()), token)
        kind = token.upper
        if kind == "EMPTY":
            kind += " " + self.cursor.expect_any("ARRAY", "OBJECT")
        return place(x.JsonBehavior(kind=kind), token)

    def _wrapper(self) -> str | None:
        """``WITH [CONDITIONAL | UNCONDITIONAL] [ARRAY] WRAPPER`` or ``WITHOUT [ARRAY] WRAPPER``."""
        word = self.cursor.take_any("WITH", "WITHOUT")
        if not word:
            return None
        condition = self.cursor.take_any("CONDITIONAL", "UNCONDITIONAL") if word == "WITH" else "WITHOUT"
        self.cursor.take("ARRAY")
        self.cursor.expect("WRAPPER")
        return condition or "UNCONDITIONAL"

    def _object(self) -> exp.Expression:
        self.cursor.expect("(")
        at_end = self.cursor.at(")") or self._at_on_null()
        pairs = [] if at_end else self.cursor.separated(self._key_value)
        on_null = self._on_null()
        self.cursor.expect(")")
        return x.JsonObject(expressions=pairs, on_null=on_null)

    def _array(self) -> exp.Expression:
        self.cursor.expect("(")
        at_end = self.cursor.at(")") or self._at_on_null()
        items = [] if at_end else self.cursor.separated(self.nested.expression)
        on_null = self._on_null()
        self.cursor.expect(")")
        return x.JsonArray(expressions=items, on_null=on_null)

    def _object_agg(self) -> exp.Expression:
        token = self.cursor.previous
        self.cursor.expect("(")
        pair = self._key_value()
        on_null = self._on_null()
        self.cursor.expect(")")
        return self.windows.followed(place(x.JsonObjectAgg(this=pair, on_null=on_null), token))

    def _array_agg(self) -> exp.Expression:
        token = self.cursor.previous
        self.cursor.expect("(")
        item = self.nested.expression()
        order = self.ordering.order_by()
        on_null = self._on_null()
        self.cursor.expect(")")
        return self.windows.followed(place(x.JsonArrayAgg(this=item, order=order, on_null=on_null), token))

    def _key_value(self) -> exp.Expression:
        token = self.cursor.current
        worded = self.cursor.take("KEY")
        key = self.nested.expression()
        if not self.cursor.take("VALUE"):
            if worded or not self.cursor.at(":"):
                self.cursor.fail("VALUE", ":")
            self.cursor.advance()
        value = self._input()
        return place(exp.JSONKeyValue(this=key, expression=value), token)

    def _at_on_null(self) -> bool:
        return self.cursor.at("NULL", "ON", "NULL") or self.cursor.at("ABSENT", "ON", "NULL")

    def _on_null(self) -> str | None:
        if not self._at_on_null():
            return None
        word = self.cursor.advance().upper
        self.cursor.expect("ON", "NULL")
        return word

    _FORMS: ClassVar[dict[str, Callable[[JsonFunctions], exp.Expression]]] = {
        "JSON_VALUE": _value,
        "JSON_QUERY": _query,
        "JSON_EXISTS": _exists,
        "JSON_OBJECT": _object,
        "JSON_ARRAY": _array,
        "JSON_OBJECTAGG": _object_agg,
        "JSON_ARRAYAGG": _array_agg,
    }
    NAMES: ClassVar[frozenset[str]] = frozenset(_FORMS)
