"""EXPLAIN: three sections with Flink's node names and attributes.

== Abstract Syntax Tree == shows the bound query, == Optimized Physical Plan == the physical tree with
changelogMode where asked for, == Optimized Execution Plan == the same in the words of execution: infix
expressions, Deduplicate for a Rank that is one, a subtree that occurs twice only once; what runs in another
way than Flink's operator says how (``runs``, see ``differences``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tidemill.physical import nodes as p
from tidemill.physical.explain.advice import Advice
from tidemill.physical.explain.attributes import attributes, execution_name, hints, joined, node_name
from tidemill.physical.explain.costs import Costs
from tidemill.physical.explain.differences import Runs, differences
from tidemill.physical.explain.json_plan import Reading, json_plan
from tidemill.physical.explain.printer import Form
from tidemill.physical.explain.syntax_tree import syntax_tree
from tidemill.physical.explain.whole_reads import Shown
from tidemill.physical.traits.changelog_mode import changelog_text
from tidemill.physical.tree import visible
from tidemill.plan.nodes import LogicalNode

T = TypeVar("T")


def explain_text(
    logical: LogicalNode | Sequence[LogicalNode],
    shown: p.PhysicalNode | Sequence[p.PhysicalNode],
    runs: p.PhysicalNode | Sequence[p.PhysicalNode],
    *,
    changelog_mode: bool = False,
    combined: Container[str] = (),
    advice: Advice | None = None,
    costs: bool = False,
) -> str:
    """The whole text; several statements of one job show one tree each in every section.

    ``logical`` is the bound plan before optimization, ``shown`` Flink's view (``view.flink_view``) of what
    ``runs``. ``changelog_mode`` is EXPLAIN CHANGELOG_MODE.
    ``combined``: as for ``differences``. ``advice`` is EXPLAIN PLAN_ADVICE, ``costs`` EXPLAIN ESTIMATED_COST.
    """
    logicals = [logical] if isinstance(logical, LogicalNode) else logical
    roots = [shown] if isinstance(shown, p.PhysicalNode) else shown
    run = [runs] if isinstance(runs, p.PhysicalNode) else runs
    whole = Shown()
    reuse = _Reuse.of(roots, [differences(*pair, combined) for pair in zip(roots, run, strict=True)], whole)
    trees = [
        physical_plan(x, changelog_mode=changelog_mode, advice=advice, costs=costs, shown=whole)
        for x in roots
    ]
    sections = (
        ("Abstract Syntax Tree", [syntax_tree(x) for x in logicals]),
        ("Optimized Physical Plan", trees)
        if advice is None
        else ("Optimized Physical Plan With Advice", [*trees, advice.text]),
        ("Optimized Execution Plan", _execution_plans(roots, reuse)),
    )
    return "\n".join(f"== {title} ==\n" + "\n\n".join(trees) + "\n" for title, trees in sections)


def physical_plan(
    root: p.PhysicalNode,
    *,
    changelog_mode: bool,
    advice: Advice | None = None,
    costs: bool = False,
    shown: Shown | None = None,
) -> str:
    shown = shown or Shown()
    counted = Costs(shown.inputs) if costs else None

    def line(node: p.PhysicalNode) -> str:
        advised = advice is not None and id(node) in advice.nodes
        text = _physical_line(node, changelog_mode=changelog_mode, advised=advised)
        return text if counted is None else f"{text}: {counted.of(node).text}"

    return draw(shown.root(root), line, shown.inputs)


def _physical_line(node: p.PhysicalNode, *, changelog_mode: bool, advised: bool = False) -> str:
    pairs = [*([("advice", "[1]")] if advised else []), *attributes(node, Form.PREFIX)]
    if changelog_mode:
        pairs = [*pairs, ("changelogMode", f"[{changelog_text(node.traits.kinds)}]")]
    return f"{node_name(node)}({joined([*pairs, *hints(node)])})"


def draw(root: T, line: Callable[[T], str], inputs: Callable[[T], Sequence[T]]) -> str:
    """A tree as indented lines with ``+- `` before the last input and ``:- `` before the others."""
    lines: list[str] = []

    def visit(node: T, head: str, rest: str) -> None:
        lines.append(head + line(node))
        below = inputs(node)
        for child in below[:-1]:
            visit(child, rest + ":- ", rest + ":  ")
        for child in below[-1:]:
            visit(child, rest + "+- ", rest + "   ")

    visit(root, "", "")
    return "\n".join(lines)


@dataclass(slots=True)
class _Reuse:
    """Which subtrees occur more than once, and the number each got when it was first printed.

    A subtree is known by its shape: its root's line and its inputs' shapes, numbered as they come, so that
    telling two apart costs a line and not a tree.
    """

    runs: Runs
    shown: Shown
    shapes: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    homes: dict[int, set[int]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    _known: dict[int, tuple[p.PhysicalNode, int]] = field(default_factory=dict)

    @staticmethod
    def of(roots: Sequence[p.PhysicalNode], runs: Sequence[Runs], shown: Shown) -> _Reuse:
        reuse = _Reuse({key: text for found in runs for key, text in found.items()}, shown)
        for place, root in enumerate(roots):
            reuse._count(shown.root(root), place)
        return reuse

    def _count(self, node: p.PhysicalNode, place: int) -> None:
        """Does not enter a subtree that was met before, which is printed once only. A sink is none: each of
        two is written to."""
        if not isinstance(node, p.Sink):
            shape = self.shape(node)
            self.times[shape] += 1
            self.homes.setdefault(shape, set()).add(place)
            if self.times[shape] > 1:
                return
        for child in self.shown.inputs(node):
            self._count(child, place)

    def shape(self, node: p.PhysicalNode) -> int:
        known = self._known.get(id(node))
        if known is None:
            below = tuple(self.shape(child) for child in self.shown.inputs(node))
            text = _physical_line(node, changelog_mode=True)
            known = self._known[id(node)] = (node, self.shapes.setdefault((text, below), len(self.shapes)))
        return known[1]

    def is_repeated(self, shape: int) -> bool:
        return self.times[shape] > 1

    def is_common(self, shape: int) -> bool:
        """Whether several trees have it: it then stands before the first of them, as a tree of its own."""
        return len(self.homes.get(shape, ())) > 1


def execution_graph(roots: Sequence[p.PhysicalNode], parallelism: int) -> str:
    """EXPLAIN JSON_EXECUTION_PLAN."""
    shown = Shown()
    reading = Reading(
        name=_graph_name,
        line=lambda node: f"{execution_name(node)}({joined([*attributes(node, Form.INFIX), *hints(node)])})",
        inputs=shown.inputs,
        exchange=_shipped,
        sink=lambda node: isinstance(node, p.Sink),
        parallelism=parallelism,
    )
    return json_plan([shown.root(visible(root)) for root in roots], reading)


def _graph_name(node: p.PhysicalNode) -> str:
    """Tables go by their names."""
    return node.table.path.name if isinstance(node, p.TableSourceScan | p.Sink) else execution_name(node)


def _shipped(node: p.PhysicalNode) -> str:
    if not isinstance(node, p.Exchange):
        return ""
    return "HASH" if node.keys else "GLOBAL"


def _execution_plans(roots: Sequence[p.PhysicalNode], reuse: _Reuse) -> list[str]:
    """The trees, each after those subtrees of it that others have, too."""
    texts: list[str] = []
    for root in map(reuse.shown.root, roots):
        texts += [_execution_plan(x, reuse) for x in _common(root, reuse)]
        texts.append(_execution_plan(root, reuse))
    return texts


def _common(root: p.PhysicalNode, reuse: _Reuse) -> list[p.PhysicalNode]:
    """The highest subtrees that stand in several trees, those of them that are not printed yet."""
    found: dict[int, p.PhysicalNode] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        shape = reuse.shape(node)
        if reuse.is_common(shape):
            found.setdefault(shape, node)
        else:
            waiting += reversed(reuse.shown.inputs(node))
    return [node for shape, node in found.items() if shape not in reuse.numbers]


def _execution_plan(root: p.PhysicalNode, reuse: _Reuse) -> str:
    first: set[int] = set()

    def line(node: p.PhysicalNode) -> str:
        shape = reuse.shape(node)
        number = reuse.numbers.get(shape)
        if number is not None:
            return f"Reused(reference_id=[{number}])"
        first.add(id(node))
        pairs = [*attributes(node, Form.INFIX), *hints(node)]
        if id(node) in reuse.runs:
            pairs.append(("runs", f"[{reuse.runs[id(node)]}]"))
        shown = f"{execution_name(node)}({joined(pairs)})"
        if not reuse.is_repeated(shape):
            return shown
        reuse.numbers[shape] = len(reuse.numbers) + 1
        return f"{shown}(reuse_id=[{reuse.numbers[shape]}])"

    def inputs(node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
        return reuse.shown.inputs(node) if id(node) in first else ()

    return draw(root, line, inputs)
