"""The JSON functions, whose arguments carry RETURNING, ON EMPTY, ON ERROR, WRAPPER and ON NULL."""

from __future__ import annotations

from sqlglot import exp

from tidemill.sql import expressions as x
from tidemill.sql.literal_grammar import LiteralGrammar

_VALUE_BEHAVIORS = ("NULL", "ERROR", "DEFAULT")
_QUERY_BEHAVIORS = ("NULL", "ERROR", "EMPTY")
_EXISTS_BEHAVIORS = ("TRUE", "FALSE", "UNKNOWN", "ERROR")


class JsonGrammar(LiteralGrammar):
    def type_spec(self) -> x.TypeSpec:
        """A type as CAST and RETURNING write it: too large a precision is cut to the largest."""
        token = self.current
        kind = self.data_type()
        return self.place(x.TypeSpec(this=kind, written=self.text_since(token)), token)

    def json_value(self) -> exp.Expression:
        this, path = self._input_and_path()
        returning = self.type_spec() if self.take("RETURNING") else None
        behaviors = self._behaviors(_VALUE_BEHAVIORS)
        self.expect(")")
        return x.JsonValue(this=this, path=path, returning=returning, **behaviors)

    def json_query(self) -> exp.Expression:
        this, path = self._input_and_path()
        returning = self.type_spec() if self.take("RETURNING") else None
        wrapper = self._wrapper()
        behaviors = self._behaviors(_QUERY_BEHAVIORS)
        self.expect(")")
        return x.JsonQuery(this=this, path=path, returning=returning, wrapper=wrapper, **behaviors)

    def json_exists(self) -> exp.Expression:
        this, path = self._input_and_path()
        behaviors = self._behaviors(_EXISTS_BEHAVIORS)
        self.expect(")")
        return x.JsonExists(this=this, path=path, on_error=behaviors.get("on_error"))

    def _input_and_path(self) -> tuple[exp.Expression, exp.Expression]:
        self.expect("(")
        this = self.expression()
        self.take("FORMAT", "JSON")
        self.expect(",")
        return this, self.expression()

    def _behaviors(self, allowed: tuple[str, ...]) -> dict[str, x.JsonBehavior]:
        """``<behavior> ON EMPTY <behavior> ON ERROR``, each at most once."""
        found: dict[str, x.JsonBehavior] = {}
        while self.at_any(*allowed):
            behavior = self._behavior()
            self.expect("ON")
            slot = "on_" + self.expect_any("EMPTY", "ERROR").lower()
            if slot in found:
                self.fail(")")
            found[slot] = behavior
        return found

    def _behavior(self) -> x.JsonBehavior:
        token = self.advance()
        if token.upper == "DEFAULT":
            return self.place(x.JsonBehavior(kind="DEFAULT", this=self.expression()), token)
        kind = token.upper
        if kind == "EMPTY":
            kind += " " + self.expect_any("ARRAY", "OBJECT")
        return self.place(x.JsonBehavior(kind=kind), token)

    def _wrapper(self) -> str | None:
        """``WITH [CONDITIONAL | UNCONDITIONAL] [ARRAY] WRAPPER`` or ``WITHOUT [ARRAY] WRAPPER``."""
        word = self.take_any("WITH", "WITHOUT")
        if not word:
            return None
        condition = self.take_any("CONDITIONAL", "UNCONDITIONAL") if word == "WITH" else "WITHOUT"
        self.take("ARRAY")
        self.expect("WRAPPER")
        return condition or "UNCONDITIONAL"

    def json_object(self) -> exp.Expression:
        self.expect("(")
        at_end = self.at(")") or self._at_on_null()
        pairs = [] if at_end else self.separated(self._key_value)
        on_null = self._on_null()
        self.expect(")")
        return x.JsonObject(expressions=pairs, on_null=on_null)

    def json_array(self) -> exp.Expression:
        self.expect("(")
        at_end = self.at(")") or self._at_on_null()
        items = [] if at_end else self.separated(self.expression)
        on_null = self._on_null()
        self.expect(")")
        return x.JsonArray(expressions=items, on_null=on_null)

    def json_object_agg(self) -> exp.Expression:
        token = self.previous
        self.expect("(")
        pair = self._key_value()
        on_null = self._on_null()
        self.expect(")")
        return self.place(x.JsonObjectAgg(this=pair, on_null=on_null), token)

    def json_array_agg(self) -> exp.Expression:
        token = self.previous
        self.expect("(")
        item = self.expression()
        order = self.order_by()
        on_null = self._on_null()
        self.expect(")")
        return self.place(x.JsonArrayAgg(this=item, order=order, on_null=on_null), token)

    def order_by(self) -> exp.Order | None:
        """ORDER BY, if one is here; given by the window grammar."""
        raise NotImplementedError

    def _key_value(self) -> exp.Expression:
        token = self.current
        worded = self.take("KEY")
        key = self.expression()
        if not self.take("VALUE"):
            if worded or not self.at(":"):
                self.fail("VALUE", ":")
            self.advance()
        value = self.expression()
        self.take("FORMAT", "JSON")
        return self.place(exp.JSONKeyValue(this=key, expression=value), token)

    def _at_on_null(self) -> bool:
        return self.at("NULL", "ON", "NULL") or self.at("ABSENT", "ON", "NULL")

    def _on_null(self) -> str | None:
        if not self._at_on_null():
            return None
        word = self.advance().upper
        self.expect("ON", "NULL")
        return word
