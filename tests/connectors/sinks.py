"""Writes through a connector's sink, as the epoch loop would."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.connectors.api import Sink, SinkRequest
from tidemill.connectors.registry import connector
from tidemill.types.logical import Field


def sink(
    declared: CatalogTable,
    *,
    kinds: frozenset[RowKind] = INSERT_ONLY,
    job: str = "job",
    overwrite: bool = False,
    streaming: bool = True,
    ordinal: int = 0,
    ordered: bool = False,
    former: tuple[str, ...] = (),
    places: tuple[str, ...] = (),
) -> Sink:
    return connector(declared.options).sink(
        SinkRequest(
            table=declared,
            options=declared.options,
            fields=tuple(Field(c.name, c.type) for c in declared.columns),
            kinds=kinds,
            job_id=job,
            overwrite=overwrite,
            static_partition={},
            time_zone="UTC",
            streaming=streaming,
            ordinal=ordinal,
            ordered=ordered,
            former=former,
            kept=places,
        )
    )


def stage(target: Sink, frame: DataFrame, epoch: int) -> list[str]:
    """The tokens of one staged epoch."""
    return [row.token for row in target.stage(frame, epoch).collect()]


def write(target: Sink, frame: DataFrame, epoch: int = 1) -> None:
    target.publish(epoch, stage(target, frame, epoch))


def visible(root: Path) -> dict[str, str]:
    """Text by path of all files that a reader would see."""
    return {
        str(p.relative_to(root)): p.read_text()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not any(part.startswith(".") for part in p.relative_to(root).parts)
    }
