"""TO_CHANGELOG and FROM_CHANGELOG as projections: ``$kind`` becomes a column, a column becomes ``$kind``."""

from __future__ import annotations

from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY, KIND_COLUMN, RowKind
from tidemill.errors import NotSupportedError
from tidemill.functions.literals import literal_sql
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.not_null import doubtful
from tidemill.runtime.compile.schemas import names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.types.logical import STRING
from tidemill.types.physical import quote

_KIND = quote(KIND_COLUMN)


@build.register
def _(node: p.ToChangelog, context: CompileContext, sequenced: bool) -> g.ExecNode:
    below = compile_node(node.input, context, sequenced)
    codes = dict(node.codes)
    dropped = [kind for kind in sorted(below.kinds) if kind not in codes]
    return g.Select(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        input=below,
        expressions=(_code(codes, below), *map(quote, below.columns)),
        references=(None, *below.columns),
        condition=_kept(dropped, below) if dropped else None,
    )


def _code(codes: dict[RowKind, str], below: g.ExecNode) -> str:
    if not below.has_kind:
        return _text(codes.get(RowKind.INSERT, ""))
    cases = " ".join(f"WHEN {int(kind)} THEN {_text(code)}" for kind, code in codes.items())
    return f"CASE {_KIND} {cases} END" if cases else _text("")


def _kept(dropped: list[RowKind], below: g.ExecNode) -> str:
    if not below.has_kind:
        return "FALSE"
    return f"{_KIND} NOT IN ({', '.join(str(int(kind)) for kind in dropped)})"


@build.register
def _(node: p.FromChangelog, context: CompileContext, sequenced: bool) -> g.ExecNode:
    below = compile_node(node.input, context, sequenced)
    if below.has_kind:
        # Flink holds such rows back until the watermark; here they come at once and are corrected later.
        raise NotSupportedError("FROM_CHANGELOG over a query whose rows are corrected later is not supported")
    kept = (*below.columns[: node.op], *below.columns[node.op + 1 :])
    return g.Select(
        columns=names(node.fields),
        kinds=ALL_KINDS,
        sequenced=sequenced,
        input=below,
        expressions=tuple(map(quote, kept)),
        references=kept,
        kind=_change(quote(below.columns[node.op]), node.codes),
    )


def _change(op: str, codes: tuple[tuple[str, RowKind], ...]) -> str:
    """The kind that the code in column ``op`` says; NULL and other codes fail."""
    cases = " ".join(f"WHEN {op} = {_text(code)} THEN {int(kind)}Y" for code, kind in codes)
    null = _failure(_text("Received NULL op code. Every changelog row must carry an operation code."))
    defined = _text(f"'. Defined op codes are: [{', '.join(code for code, _ in codes)}].")
    unknown = _failure(f"concat({_text('Received invalid op code ' + chr(39))}, {op}, {defined})")
    return f"CASE {cases} WHEN {op} IS NULL THEN {null} ELSE {unknown} END"


def _failure(message: str) -> str:
    return f"CAST(raise_error({message}) AS TINYINT)"


def _text(text: str) -> str:
    return literal_sql(text, STRING)


@doubtful.register
def _(node: p.ToChangelog, place: int) -> bool:
    return place > 0 and doubtful(node.input, place - 1)


@doubtful.register
def _(node: p.FromChangelog, place: int) -> bool:
    return doubtful(node.input, place + (place >= node.op))
