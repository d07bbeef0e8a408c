"""The user function of Nexmark's q14."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.user_functions.declared import udf


@udf(input_types=["STRING", "STRING"], result_type="BIGINT NOT NULL", func_type="arrow")
def count_char(text: pa.Array, character: pa.Array) -> pa.Array:
    """How often the first byte of ``character`` is in ``text``, both as UTF-8; 0 in NULL.

    Raises ValueError for a ``character`` that is NULL or empty.
    """
    texts, first = text.cast(pa.binary()), pc.binary_slice(character.cast(pa.binary()), 0, 1)
    counts = pa.nulls(len(text), pa.int64()).fill_null(0)
    for byte in pc.unique(first).to_pylist():
        if not byte:
            raise ValueError("count_char needs a character to count")
        found = pc.count_substring(texts, pattern=byte).cast(pa.int64()).fill_null(0)
        counts = pc.if_else(pc.equal(first, byte), found, counts)
    return counts
