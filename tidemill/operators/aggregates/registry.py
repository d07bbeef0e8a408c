"""Which function is computed how: the table of aggregate kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.collections import array_agg, collect, listagg
from tidemill.operators.aggregates.count import count
from tidemill.operators.aggregates.first_last import first_value, last_value
from tidemill.operators.aggregates.json_text import json_arrayagg, json_objectagg
from tidemill.operators.aggregates.min_max import maximum, minimum
from tidemill.operators.aggregates.percentile import percentile
from tidemill.operators.aggregates.single_value import single_value
from tidemill.operators.aggregates.sum import average, sum0, sum_
from tidemill.operators.aggregates.user import user_aggregate
from tidemill.operators.aggregates.variance import stddev_pop, stddev_samp, var_pop, var_samp

ORDERED = frozenset({"FIRST_VALUE", "LAST_VALUE", "LISTAGG", "ARRAY_AGG", "JSON_ARRAYAGG", "JSON_OBJECTAGG"})
"""Functions whose result depends on arrival order: their input carries ``$seq``."""

Builder = Callable[[AggregateSpec, Source], Aggregate]

BUILDERS: Mapping[str, Builder] = {
    "COUNT": count,
    "SUM": sum_,
    "$SUM0": sum0,
    "SUM0": sum0,
    "AVG": average,
    "MIN": minimum,
    "MAX": maximum,
    "FIRST_VALUE": first_value,
    "LAST_VALUE": last_value,
    "SINGLE_VALUE": single_value,
    "LISTAGG": listagg,
    "ARRAY_AGG": array_agg,
    "COLLECT": collect,
    "JSON_ARRAYAGG": json_arrayagg,
    "JSON_OBJECTAGG": json_objectagg,
    "PERCENTILE": percentile,
    "VAR_POP": var_pop,
    "VAR_SAMP": var_samp,
    "VARIANCE": var_samp,
    "STDDEV_POP": stddev_pop,
    "STDDEV_SAMP": stddev_samp,
    "STDDEV": stddev_samp,
}


def build(spec: AggregateSpec, source: Source) -> Aggregate:
    """The kernel of a call; NotSupportedError names a function without one."""
    if spec.user is not None:
        return user_aggregate(spec, spec.user, source)
    builder = BUILDERS.get(spec.function)
    if builder is None:
        raise NotSupportedError(
            f"Aggregate function {spec.function} is not supported in streaming mode",
            expected=tuple(sorted(BUILDERS)),
        )
    return builder(spec, source)
