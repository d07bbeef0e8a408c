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
from tidemill.physical.explain.differences import Runs, differences
from tidemill.physical.explain.json_plan import Reading, json_plan
from tidemill.physical.explain.printer import Form
from tidemill.physical.explain.syntax_tree import syntax_tree
from tidemill.physical.plan import PhysicalPlan
from tidemill.physical.traits.changelog_mode import changelog_text
from tidemill.physical.tree import visible
from tidemill.plan.nodes import LogicalNode

T = TypeVar("T")


def explain_text(
    logical: LogicalNode | Sequence[LogicalNode],
    physical: PhysicalPlan | Sequence[PhysicalPlan],
    *,
    changelog_mode: bool = False,
    combined: Container[str] = (),
    advice: Advice | None = None,
) -> str:
    """The whole text; several statements of one job show one tree each in every section.

    ``logical`` is the bound plan before optimization. ``changelog_mode`` is EXPLAIN CHANGELOG_MODE.
    ``combined``: as for ``differences``. ``advice`` is EXPLAIN PLAN_ADVICE.
    """
    logicals = [logical] if isinstance(logical, LogicalNode) else logical
    plans = [physical] if isinstance(physical, PhysicalPlan) else physical
    physicals = [plan.shown for plan in plans]
    reuse = _Reuse.of(physicals, [differences(plan.shown, plan.runs, combined) for plan in plans])
    trees = [physical_plan(x, changelog_mode=changelog_mode, advice=advice) for x in physicals]
    sections = (
        ("Abstract Syntax Tree", [syntax_tree(x) for x in logicals]),
        ("Optimized Physical Plan", trees)
        if advice is None
        else ("Optimized Physical Plan With Advice", [*trees, advice.text]),
        ("Optimized Execution Plan", [_execution_plan(x, reuse) for x in physicals]),
    )
    return "\n".join(f"== {title} ==\n" + "\n\n".join(trees) + "\n" for title, trees in sections)


def physical_plan(root: p.PhysicalNode, *, changelog_mode: bool, advice: Advice | None = None) -> str:
    def line(node: p.PhysicalNode) -> str:
        advised = advice is not None and id(node) in advice.nodes
        return _physical_line(node, changelog_mode=changelog_mode, advised=advised)

    return draw(root, line, visible_inputs)


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


def visible_inputs(node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
    return tuple(visible(i) for i in node.inputs)


@dataclass(slots=True)
class _Reuse:
    """Which subtrees occur more than once, and the number each got when it was first printed.

    A subtree is known by its shape: its root's line and its inputs' shapes, numbered as they come, so that
    telling two apart costs a line and not a tree.
    """

    runs: Runs
    shapes: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    times: Counter[int] = field(default_factory=Counter)
    numbers: dict[int, int] = field(default_factory=dict)
    _known: dict[int, tuple[p.PhysicalNode, int]] = field(default_factory=dict)

    @staticmethod
    def of(roots: Sequence[p.PhysicalNode], runs: Sequence[Runs]) -> _Reuse:
        reuse = _Reuse({key: text for found in runs for key, text in found.items()})
        for root in roots:
            reuse._count(root)
        return reuse

    def _count(self, node: p.PhysicalNode) -> None:
        """Does not enter a subtree that was met before, which is printed once only."""
        shape = self.shape(node)
        self.times[shape] += 1
        if self.times[shape] == 1:
            for child in visible_inputs(node):
                self._count(child)

    def shape(self, node: p.PhysicalNode) -> int:
        known = self._known.get(id(node))
        if known is None:
            below = tuple(self.shape(child) for child in visible_inputs(node))
            text = _physical_line(node, changelog_mode=True)
            known = self._known[id(node)] = (node, self.shapes.setdefault((text, below), len(self.shapes)))
        return known[1]

    def is_repeated(self, shape: int) -> bool:
        return self.times[shape] > 1


def execution_graph(plans: Sequence[PhysicalPlan], parallelism: int) -> str:
    """EXPLAIN JSON_EXECUTION_PLAN."""
    reading = Reading(
        name=execution_name,
        line=lambda node: f"{execution_name(node)}({joined([*attributes(node, Form.INFIX), *hints(node)])})",
        inputs=visible_inputs,
        exchange=_shipped,
        parallelism=parallelism,
    )
    return json_plan([visible(plan.shown) for plan in plans], reading)


def _shipped(node: p.PhysicalNode) -> str:
    if not isinstance(node, p.Exchange):
        return ""
    return "HASH" if node.keys else "GLOBAL"


def _execution_plan(root: p.PhysicalNode, reuse: _Reuse) -> str:
    def line(node: p.PhysicalNode) -> str:
        shape = reuse.shape(node)
        number = reuse.numbers.get(shape)
        if number is not None:
            return f"Reused(reference_id=[{number}])"
        pairs = [*attributes(node, Form.INFIX), *hints(node)]
        if id(node) in reuse.runs:
            pairs.append(("runs", f"[{reuse.runs[id(node)]}]"))
        shown = f"{execution_name(node)}({joined(pairs)})"
        if not reuse.is_repeated(shape):
            return shown
        reuse.numbers[shape] = len(reuse.numbers) + 1
        return f"{shown}(reuse_id=[{reuse.numbers[shape]}])"

    printed: set[int] = set()

    def inputs(node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
        shape = reuse.shape(node)
        if shape in printed and reuse.is_repeated(shape):
            return ()
        printed.add(shape)
        return visible_inputs(node)

    return draw(root, line, inputs)
