"""Merges inner joins of insert-only rows into one join with all columns.

Joins that retract pairs are not merged, because a reader would get updates of columns that it does not read.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.physical import nodes as p
from tidemill.physical.digests import Digests
from tidemill.physical.finish import exchange, finish
from tidemill.physical.sharing.family import Family, Part, columns_of, free_name
from tidemill.physical.sharing.merge_scans import Positions, merge_scans, origin
from tidemill.plan.expressions import Expr
from tidemill.plan.nodes import JoinKind
from tidemill.plan.rewrite import move_inputs
from tidemill.types.logical import Field


def _accepts(node: p.PhysicalNode) -> bool:
    plain = type(node) is p.Join and node.kind is JoinKind.INNER and node.traits.kinds == INSERT_ONLY
    return plain and all(isinstance(i, p.Exchange) for i in node.inputs)


def _signature(node: p.PhysicalNode, digests: Digests) -> Hashable:
    join = _join(node)
    origins = tuple(origin(side.inputs[0], digests) for side in join.inputs)
    return origins, join.null_safe, join.by_identity, join.left_ttl, join.right_ttl, join.null_aware


def _merge(
    members: Sequence[p.PhysicalNode], kinds: frozenset[RowKind], digests: Digests
) -> list[Part] | None:
    joins = [_join(member) for member in members]
    left = merge_scans([join.left.inputs[0] for join in joins], digests)
    right = merge_scans([join.right.inputs[0] for join in joins], digests)
    if left is None or right is None:
        return None
    width = len(left.node.fields)
    positions = [
        (*a, *(width + column for column in b)) for a, b in zip(left.positions, right.positions, strict=True)
    ]
    senses = {_moved(join, columns, width) for join, columns in zip(joins, positions, strict=True)}
    if len(senses) > 1:
        return None
    ((left_keys, right_keys, residual),) = senses
    whole = finish(
        replace(
            joins[0],
            fields=_named((*left.node.fields, *right.node.fields)),
            left=exchange(left.node, left_keys),
            right=exchange(right.node, right_keys),
            left_keys=left_keys,
            right_keys=right_keys,
            residual=residual,
        )
    )
    return [columns_of(whole, columns) for columns in positions]


def _join(node: p.PhysicalNode) -> p.Join:
    assert isinstance(node, p.Join)
    return node


def _moved(join: p.Join, positions: Positions, width: int) -> tuple[Positions, Positions, Expr | None]:
    """The keys of both sides and the residual, over the wide inputs."""
    own = len(join.left.fields)
    left = tuple(positions[k] for k in join.left_keys)
    right = tuple(positions[own + k] - width for k in join.right_keys)
    residual = join.residual
    return left, right, None if residual is None else move_inputs(residual, lambda column: positions[column])


def _named(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The fields under unique names."""
    renamed: list[Field] = []
    for field in fields:
        renamed.append(replace(field, name=free_name(field.name, (f.name for f in renamed))))
    return tuple(renamed)


JOINS = Family(_accepts, _signature, _merge)
