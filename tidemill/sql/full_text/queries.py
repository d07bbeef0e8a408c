"""Queries and relations: each clause on a line of its own, joins and members of set operations too."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tidemill.sql import expressions as x
from tidemill.sql.full_text.expressions import Printer
from tidemill.sql.full_text.functions import FORMS, directions, window
from tidemill.sql.full_text.names import FullNames, Unprintable, quoted, string
from tidemill.sql.full_text.stars import is_star

_SET_WORDS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def full_text(tree: exp.Expr, names: FullNames, *, rewritten: bool = True) -> str:
    """The query in the words of Flink; Unprintable where a part of it has no form here. ``rewritten``: what
    Flink writes in other words (a table as an argument, NULLIF, defaults) in these, which may give another
    plan."""
    return _Queries(names, rewritten).query(tree)


class _Queries:
    """Prints one query with its subqueries."""

    def __init__(self, names: FullNames, rewritten: bool) -> None:
        self._printer = Printer(names, self.query, rewritten, FORMS)
        self._rewritten = rewritten
        self._names = names

    def query(self, tree: exp.Expr) -> str:
        ctes = tree.args.get("with_")
        text = self._body(tree) + self._modifiers(tree)
        if ctes is None:
            return text
        if ctes.args.get("recursive"):
            raise Unprintable("WITH RECURSIVE")
        return f"WITH {', '.join(map(self._cte, ctes.expressions))} {text}"

    def _cte(self, cte: exp.Expr) -> str:
        columns = cte.args["alias"].args.get("columns") or ()
        listed = f" ({', '.join(quoted(c.name) for c in columns)})" if columns else ""
        return f"{quoted(cte.alias)}{listed} AS ({self.query(cte.this)})"

    def _body(self, tree: exp.Expr) -> str:
        if isinstance(tree, exp.Select):
            return self._select(tree)
        if isinstance(tree, exp.Subquery):
            return f"({self.query(tree.this)})"
        word = _SET_WORDS.get(type(tree))
        if word is None:
            raise Unprintable(type(tree).__name__)
        kind = word if tree.args.get("distinct") else f"{word} ALL"
        return f"{self._member(tree, tree.this)}\n{kind}\n{self._member(tree, tree.expression, right=True)}"

    def _member(self, parent: exp.Expr, tree: exp.Expr, *, right: bool = False) -> str:
        """INTERSECT binds more strongly than the others, which are left-associative."""
        text = self.query(tree)
        looser = isinstance(parent, exp.Intersect) and isinstance(tree, exp.Union | exp.Except)
        same = type(tree) in _SET_WORDS and not isinstance(tree, exp.Intersect)
        nested = right and (same or (isinstance(parent, exp.Intersect) and isinstance(tree, exp.Intersect)))
        return f"({text})" if looser or nested else text

    def _modifiers(self, tree: exp.Expr) -> str:
        text = ""
        if tree.args.get("order") is not None:
            text += f"\nORDER BY {self._order(tree.args['order'])}"
        if tree.args.get("offset") is not None:
            text += f"\nOFFSET {tree.args['offset'].expression.name} ROWS"
        if tree.args.get("limit") is not None:
            text += f"\nFETCH NEXT {tree.args['limit'].expression.name} ROWS ONLY"
        return text

    def _order(self, order: exp.Expr) -> str:
        """Keys that are the query's own columns by their names."""
        return ", ".join(self._key(key.this) + directions(key) for key in order.expressions)

    def _key(self, node: exp.Expr) -> str:
        plain = isinstance(node, exp.Column) and len(node.parts) == 1
        return quoted(node.name) if plain else self._printer.text(node)

    def _select(self, tree: exp.Select) -> str:
        source = tree.args.get("from_")
        values = source.this if source is not None else None
        if isinstance(values, exp.Values) and not values.alias and tree.is_star:
            return self._values(values)
        if tree.args.get("qualify") is not None:
            raise Unprintable("QUALIFY")
        items = ", ".join(map(self._item, tree.expressions))
        hints = tree.args.get("hint")
        hints_text = f"\n{_hints(hints.expressions)}\n" if hints is not None else " "
        text = f"SELECT{hints_text}{'DISTINCT ' if tree.args.get('distinct') else ''}{items}"
        if source is not None:
            text += f"\nFROM {self._relation(source.this)}{self._joins(tree)}"
        return text + "".join(self._clause(tree, slot) for slot in _CLAUSES)

    def _clause(self, tree: exp.Expr, slot: str) -> str:
        node = tree.args.get(slot)
        return f"\n{_CLAUSES[slot](self, node)}" if node else ""

    def _item(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Alias):
            return f"{self._printer.text(node.this)} AS {quoted(node.alias)}"
        if not is_star(node):
            return self._printer.text(node)
        if id(node) not in self._names.stars:
            raise Unprintable("*")
        return ", ".join(
            quoted(*name) if name[-1] == output_name else f"{quoted(*name)} AS {quoted(output_name)}"
            for name, output_name in self._names.stars[id(node)]
        )

    def _group(self, node: exp.Expr) -> str:
        parts = [self._grouping(key) for key in node.expressions]
        for slot in ("grouping_sets", "rollup", "cube"):
            parts += [self._grouping(element) for element in node.args.get(slot) or ()]
        return f"GROUP BY {', '.join(parts)}"

    def _grouping(self, node: exp.Expr) -> str:
        word = _GROUPINGS.get(type(node))
        if word is not None:
            return f"{word}({', '.join(map(self._grouping, node.expressions))})"
        if isinstance(node, exp.Tuple):
            return f"({self._printer.listed(node.expressions)})"
        return self._printer.text(node)

    def _windows(self, nodes: list[exp.Expr]) -> str:
        named = (f"{quoted(node.this.name)} AS ({window(self._printer, node)})" for node in nodes)
        return f"WINDOW {', '.join(named)}"

    def _condition(self, word: str, node: exp.Expr) -> str:
        return f"{word} {self._printer.text(node.this)}"

    # -- relations

    def _joins(self, tree: exp.Expr) -> str:
        return "".join(map(self._join, tree.args.get("joins") or ()))

    def _join(self, node: exp.Expr) -> str:
        right = self._relation(node.this)
        kind = node.args.get("kind")
        if kind is None:
            return f",\n{right}"
        words = [node.args.get("method"), node.args.get("side") or kind, "JOIN"]
        text = f"\n{' '.join(word for word in words if word)} {right}"
        if node.args.get("on") is not None:
            return f"{text} ON {self._printer.text(node.args['on'])}"
        using = node.args.get("using")
        return f"{text} USING ({', '.join(quoted(c.name) for c in using)})" if using else text

    def _relation(self, node: exp.Expr) -> str:
        print_node = _RELATIONS.get(type(node))
        if print_node is None or node.args.get("joins"):
            raise Unprintable(type(node).__name__)
        return print_node(self, node)

    def _table(self, node: exp.Expr) -> str:
        path = self._names.tables.get(id(node))
        if path is None:
            raise Unprintable(node.name)
        version = node.args.get("version")
        text = quoted(*path)
        if node.args.get("hints"):
            if version is not None or node.args.get("alias") is not None:
                raise Unprintable("hints of a table with an alias")
            return f"{text}\n{_hints(node.args['hints'])}"
        if version is not None:
            text += f" FOR SYSTEM_TIME AS OF {self._printer.text(version.expression)}"
        return f"{text} AS {quoted(node.alias or path[-1])}{_columns(node)}"

    def _named(self, text: str, node: exp.Expr) -> str:
        alias = node.alias or self._names.relations.get(id(node))
        return f"{text} AS {quoted(alias)}{_columns(node)}" if alias else text

    def _values(self, node: exp.Expr) -> str:
        return "VALUES " + ",\n".join(
            f"ROW({self._printer.listed(row.expressions)})" for row in node.expressions
        )

    def _unnest(self, node: exp.Expr) -> str:
        ordinality = " WITH ORDINALITY" if node.args.get("offset") else ""
        return self._named(f"UNNEST({self._printer.listed(node.expressions)}){ordinality}", node)

    def _function(self, node: exp.Expr) -> str:
        if node.args.get("lateral") or node.args.get("hints"):
            raise Unprintable("a table function")
        arguments = ", ".join(map(self._argument, node.this.expressions))
        return self._named(f"TABLE({node.this.name.upper()}({arguments}))", node)

    def _argument(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Kwarg):
            return f"`{node.this.name}` => {self._argument(node.expression)}"
        if not isinstance(node, x.TableArgument):
            return self._printer.text(node)
        if node.args.get("partition_by") or node.args.get("order") is not None:
            raise Unprintable("TABLE ... PARTITION BY")
        if not self._rewritten:
            return f"TABLE {quoted(*self._names.tables[id(node.this)])}"
        columns = self._names.stars.get(id(node.this))
        if columns is None:
            raise Unprintable("TABLE")
        return f"(SELECT {', '.join(quoted(*name) for name, _ in columns)}\nFROM {self._table(node.this)})"


def _hints(hints: list[exp.Expr]) -> str:
    texts = []
    for hint in hints:
        assert isinstance(hint, x.FlinkHint)
        items = [*(f"{string(k)} = {string(v)}" for k, v in hint.options), *map(quoted, hint.arguments)]
        texts.append(f"{quoted(hint.name)}({', '.join(items)})")
    return f"/*+ {', '.join(texts)} */"


def _columns(node: exp.Expr) -> str:
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return f" ({', '.join(quoted(c.name) for c in columns)})" if columns else ""


_CLAUSES: dict[str, Callable[..., str]] = {
    "where": lambda queries, node: queries._condition("WHERE", node),
    "group": _Queries._group,
    "having": lambda queries, node: queries._condition("HAVING", node),
    "windows": _Queries._windows,
}
_GROUPINGS: dict[type[exp.Expr], str] = {
    exp.GroupingSets: "GROUPING SETS",
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
}
_RELATIONS: dict[type[exp.Expr], Callable[[_Queries, exp.Expr], str]] = {
    exp.Table: _Queries._table,
    exp.Subquery: lambda queries, node: queries._named(f"({queries.query(node.this)})", node),
    exp.Values: lambda queries, node: queries._named(f"({queries._values(node)})", node),
    exp.Unnest: _Queries._unnest,
    x.FunctionTable: _Queries._function,
}
