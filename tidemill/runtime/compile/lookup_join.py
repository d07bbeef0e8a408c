"""LookupJoin -> a stage over the rows as they come, which asks the table's connector for the rows of keys.

Rows that only come, without a condition that an outer join must know: the stage gives the joined rows. Else
it gives each row with the list of what was found, from which Spark chooses and of which it makes rows. Where
rows may go again an operator behind that keeps what was found (``operators.lookup_join``).
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.api import LookupConnector, LookupRequest, LookupTable, ScannedTable
from tidemill.connectors.lookup.asking import Asking
from tidemill.connectors.lookup.options import Caching, Full, Partial, Retry, caching
from tidemill.connectors.registry import validate
from tidemill.errors import NotSupportedError
from tidemill.files.fence import OPEN, Fence
from tidemill.operators.lookup_join import ROW, THERE
from tidemill.physical import nodes as p
from tidemill.physical.traits.determinism import refuse_changes
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import JoinKind
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.kept_rows import kept_rows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import BIGINT, ArrayType, Field, RowType
from tidemill.types.physical import arrow_type, quote

FOUND = "$found"
_ROW = "_row"
"""A row that was found, where a condition looks at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``fields``: the wanted columns of ``table``, ``keys`` those of them that are asked by."""

    table: CatalogTable
    options: tuple[tuple[str, str], ...]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    retry: Retry | None
    zone: str
    fence: Fence = OPEN


def asking(asked: Asked) -> Asking:
    """What its connector makes of it; NotSupportedError where it does not do that."""
    options = dict(asked.options)
    found: object = validate(asked.table, options, role="source")
    if not isinstance(found, LookupConnector):
        raise NotSupportedError(
            f"Connector '{options['connector']}' cannot be asked by key: FOR SYSTEM_TIME AS OF a processing"
            " time",
            hint="Use a jdbc table or files, or join by event time: FOR SYSTEM_TIME AS OF o.ts, "
            "WATERMARK FOR ts.",
        )
    request = LookupRequest(
        table=asked.table,
        options=options,
        fields=asked.fields,
        keys=asked.keys,
        time_zone=asked.zone,
        fence=asked.fence,
    )
    table, kept = found.lookup_table(request), caching(options)
    _check(asked.table, table, kept)
    types = {f.name: arrow_type(f.type) for f in asked.fields}
    return Asking(
        table=table,
        keys=asked.keys,
        types=tuple(types[name] for name in asked.keys),
        caching=kept,
        retry=asked.retry,
    )


def _check(declared: CatalogTable, table: LookupTable | ScannedTable, kept: Caching) -> None:
    if isinstance(kept, Partial) and not isinstance(table, LookupTable):
        raise NotSupportedError(
            f"'lookup.cache' = 'PARTIAL' of table '{declared.path}', which is read whole, is not supported",
            hint="Use FULL; NONE reads it again when it has changed.",
        )
    if isinstance(kept, Full) and not isinstance(table, ScannedTable):
        raise NotSupportedError(
            f"'lookup.cache' = 'FULL' of table '{declared.path}', only asked by key, is not supported",
            hint="Use PARTIAL or NONE.",
        )


@build.register
def _(node: p.LookupJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    refuse_changes(node, (node.condition,), "in a lookup join's condition")
    below = compile_node(node.input, context, sequenced)
    joined = _Joined(node=node, below=below, context=context)
    if below.kinds != INSERT_ONLY:
        return joined.kept()
    outer = node.kind is JoinKind.LEFT
    return joined.chosen(()) if outer and node.condition is not None else joined.plain()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """The exec nodes of ``node`` over ``below``."""

    node: p.LookupJoin
    below: g.ExecNode
    context: CompileContext

    @property
    def fields(self) -> tuple[Field, ...]:
        """Of the table."""
        return self.node.fields[len(self.node.input.fields) :]

    def plain(self) -> g.ExecNode:
        """The joined rows as the stage gives them, and a filter above."""
        node, below = self.node, self.below
        schema = keyed_schema(node.fields, below.kinds, below.sequenced, below.timed)
        joined = self._lookup(names(node.fields), schema, nested=False)
        if node.condition is None:
            return joined
        translator = Translator(columns=joined.columns, zone=self.context.zone)
        return g.Select(
            columns=joined.columns,
            kinds=joined.kinds,
            sequenced=joined.sequenced,
            input=joined,
            expressions=tuple(map(quote, joined.columns)),
            references=joined.columns,
            condition=translator.sql(node.condition),
        )

    def chosen(self, beside: tuple[str, ...]) -> g.ExecNode:
        """A row for each match that meets the condition, or one row with NULLs if none does. ``beside``:
        further columns of the stage; then a column also says whether there was a match."""
        node, below = self.node, self.below
        row = tuple(Field(f"r{i}", f.type.with_nullable(True)) for i, f in enumerate(self.fields))
        listed = ArrayType(element=RowType(fields=row))
        own = tuple(Field(c, f.type) for c, f in zip(below.columns, node.input.fields, strict=True))
        fields = (*own, Field(FOUND, listed), Field(ROW, BIGINT))
        schema = keyed_schema(fields, below.kinds, below.sequenced, below.timed)
        joined = self._lookup(names(fields), schema, nested=True)
        told = ((THERE, "true"),) if beside else ()
        own_names = names(node.fields[: len(own)])
        return g.Generate(
            columns=(*own_names, *beside, *names(self.fields), *(name for name, _ in told)),
            kinds=joined.kinds,
            sequenced=joined.sequenced,
            input=joined,
            expressions=tuple(map(quote, (*below.columns, *beside))),
            generator=self._generator(row, told),
        )

    def kept(self) -> g.ExecNode:
        """What was found, kept until the rows go that it was found for."""
        node = self.node
        rows, outer = self.chosen((ROW,)), node.kind is JoinKind.LEFT
        return kept_rows(node, node.input, rows, self.context, outer=outer, sequenced=rows.sequenced)

    def _lookup(self, columns: tuple[str, ...], schema: str, *, nested: bool) -> g.Lookup:
        node, below = self.node, self.below
        return g.Lookup(
            columns=columns,
            bundle=self.context.bundle,
            kinds=below.kinds,
            sequenced=below.sequenced,
            input=below,
            asking=asking(
                Asked(
                    table=node.table,
                    options=node.options,
                    fields=tuple(Field(c, f.type) for c, f in zip(node.columns, self.fields, strict=True)),
                    keys=tuple(node.columns[column] for _, column in node.keys),
                    retry=node.retry,
                    zone=self.context.zone,
                    fence=self.context.fence,
                )
            ),
            keys=tuple(below.columns[own] for own, _ in node.keys),
            outer=node.kind is JoinKind.LEFT,
            nested=nested,
            schema=schema,
            name=f"lookup-{self.context.digests.of(node)}",
        )

    def _generator(self, row: tuple[Field, ...], told: tuple[tuple[str, str], ...]) -> str:
        translator = Translator(columns=self.below.columns, zone=self.context.zone)
        found = chosen_rows(quote(FOUND), row, self.node.condition, translator)
        if told:
            members = [f"{_ROW}.{f.name} AS {f.name}" for f in row] + [
                f"{sql} AS {quote(n)}" for n, sql in told
            ]
            found = f"transform({found}, {_ROW} -> struct({', '.join(members)}))"
        aliases = ", ".join(map(quote, (*names(self.fields), *(name for name, _ in told))))
        return f"inline_outer({found}) AS ({aliases})"


def chosen_rows(found: str, row: tuple[Field, ...], condition: Expr | None, translator: Translator) -> str:
    """Of the list ``found`` the rows that meet ``condition``, over the translator's columns and theirs."""
    if condition is None:
        return found
    return f"filter({found}, {_ROW} -> {translator.beside(_ROW, row).sql(condition)})"
