"""EXPLAIN: three sections with Flink's node names and attributes.

- == Abstract Syntax Tree ==: the bound query.
- == Optimized Physical Plan ==: the physical tree, on request with changelogMode.
- == Optimized Execution Plan ==: the same tree with infix expressions, and Deduplicate for a Rank that is a
  deduplication. A repeated subtree is printed once. A node that runs unlike Flink's operator says how
  (``runs``, see ``differences``).
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
from tidemill.physical.explain.whole_reads import ShownPlan
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
    """The whole text. Each section has a tree per statement of the job.

    ``logical``: the bound plan before optimization. ``runs``: the running plan. ``shown``: Flink's view of it
    (``view.flink_view``). ``changelog_mode``: for EXPLAIN CHANGELOG_MODE.
    ``combined``: as for ``differences``. ``advice`` is EXPLAIN PLAN_ADVICE, ``costs`` EXPLAIN ESTIMATED_COST.
    """
    logicals = [logical] if isinstance(logical, LogicalNode) else logical
    roots = [shown] if isinstance(shown, p.PhysicalNode) else shown
    run = [runs] if isinstance(runs, p.PhysicalNode) else runs
    whole = ShownPlan()
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
    shown: ShownPlan | None = None,
) -> str:
    shown = shown or ShownPlan()
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

    def visit(node: T, head: str, indent: str) -> None:
        lines.append(head + line(node))
        below = inputs(node)
        for child in below[:-1]:
            visit(child, indent + ":- ", indent + ":  ")
        for child in below[-1:]:
            visit(child, indent + "+- ", indent + "   ")

    visit(root, "", "")
    return "\n".join(lines)


@dataclass(slots=True)
class _Reuse:
    """The subtrees that occur more than once, and their numbers in the order of printing.

    The shape of a subtree is its root's line and its inputs' shapes. Shapes are numbered, so comparing two
    subtrees costs a line and not a tree.
    """

    runs: Runs
    shown: ShownPlan
    shapes: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    homes: dict[int, set[int]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    _cache: dict[int, tuple[p.PhysicalNode, int]] = field(default_factory=dict)

    @staticmethod
    def of(roots: Sequence[p.PhysicalNode], runs: Sequence[Runs], shown: ShownPlan) -> _Reuse:
        reuse = _Reuse(
            {key: text for attributes_by_id in runs for key, text in attributes_by_id.items()}, shown
        )
        for number, root in enumerate(roots):
            reuse._count(shown.root(root), number)
        return reuse

    def _count(self, node: p.PhysicalNode, tree: int) -> None:
        """Counts subtrees, without entering a repeated subtree, which is printed only once. A sink is never
        repeated: two equal sinks are both written to."""
        if not isinstance(node, p.Sink):
            shape = self.shape(node)
            self.times[shape] += 1
            self.homes.setdefault(shape, set()).add(tree)
            if self.times[shape] > 1:
                return
        for child in self.shown.inputs(node):
            self._count(child, tree)

    def shape(self, node: p.PhysicalNode) -> int:
        cached = self._cache.get(id(node))
        if cached is None:
            below = tuple(self.shape(child) for child in self.shown.inputs(node))
            text = _physical_line(node, changelog_mode=True)
            cached = self._cache[id(node)] = (node, self.shapes.setdefault((text, below), len(self.shapes)))
        return cached[1]

    def is_repeated(self, shape: int) -> bool:
        return self.times[shape] > 1

    def is_common(self, shape: int) -> bool:
        """Whether several trees contain it. Then it is printed as its own tree before the first of them."""
        return len(self.homes.get(shape, ())) > 1


def execution_graph(roots: Sequence[p.PhysicalNode], parallelism: int) -> str:
    """EXPLAIN JSON_EXECUTION_PLAN."""
    shown = ShownPlan()
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
    """A node's name; for scans and sinks the table's name."""
    return node.table.path.name if isinstance(node, p.TableSourceScan | p.Sink) else execution_name(node)


def _shipped(node: p.PhysicalNode) -> str:
    if not isinstance(node, p.Exchange):
        return ""
    return "HASH" if node.keys else "GLOBAL"


def _execution_plans(roots: Sequence[p.PhysicalNode], reuse: _Reuse) -> list[str]:
    """The trees, each after the subtrees that it shares with other trees."""
    texts: list[str] = []
    for root in map(reuse.shown.root, roots):
        texts += [_execution_plan(x, reuse) for x in _common(root, reuse)]
        texts.append(_execution_plan(root, reuse))
    return texts


def _common(root: p.PhysicalNode, reuse: _Reuse) -> list[p.PhysicalNode]:
    """The largest subtrees that several trees contain and that are not printed yet."""
    common_nodes: dict[int, p.PhysicalNode] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        shape = reuse.shape(node)
        if reuse.is_common(shape):
            common_nodes.setdefault(shape, node)
        else:
            waiting += reversed(reuse.shown.inputs(node))
    return [node for shape, node in common_nodes.items() if shape not in reuse.numbers]


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
