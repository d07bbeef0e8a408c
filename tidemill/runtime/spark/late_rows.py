"""Late rows on their way to the table of late rows: written where they were found, shown with their epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.connectors.api import BatchMap
from tidemill.functions.text.json_functions import json_values, quoted
from tidemill.operators.api import LateRows


@dataclass(frozen=True, slots=True, kw_only=True)
class LateWriter:
    """``stager``: of the table's sink for the epoch; ``watermark``: the type of its second column; ``names``:
    what columns of the operator are called in the plan."""

    stager: BatchMap
    watermark: pa.DataType
    names: Mapping[str, str] = field(default_factory=dict)

    def tokens(self, late: LateRows, operator: str) -> list[str]:
        """Stages the rows that ``operator`` kept; the tokens they are published by."""
        batches = [batch for rows in late.rows for batch in self._told(rows, operator).to_batches()]
        if not batches:
            return []
        return [token for batch in self.stager(iter(batches)) for token in batch.column(0).to_pylist()]

    def _told(self, rows: pa.Table, operator: str) -> pa.Table:
        """Per row the operator, the watermark that it came behind, and its columns as a JSON object. Cost:
        one text per distinct value of a column."""
        parts: list[pa.Array | str] = []
        for name in rows.column_names:
            if not name.startswith("$"):
                shown = self.names.get(name, name)
                parts.append(f"{',' if parts else '{'}{quoted(shown)}:")
                parts.append(json_values(single(rows.column(name)), False))
        texts = pc.binary_join_element_wise(*parts, "}", "") if parts else pa.array(["{}"] * len(rows))
        marks = vector(single(rows.column(WATERMARK_COLUMN))).values
        known = marks != NONE
        instants = to_arrow(Vec(np.where(known, marks, 0) * 1000, known), pa.timestamp("us"))
        schema = pa.schema([("c0", pa.string()), ("c1", self.watermark), ("c2", pa.string())])
        columns = [pa.array([operator] * len(rows), pa.string()), instants.cast(self.watermark), texts]
        return pa.table(columns, schema=schema)
