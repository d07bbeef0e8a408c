"""Which function is computed how: the table of aggregate kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.count import count
from tidemill.operators.aggregates.min_max import maximum, minimum
from tidemill.operators.aggregates.sum import average, sum0, sum_
from tidemill.operators.aggregates.variance import stddev_pop, stddev_samp, var_pop, var_samp

Builder = Callable[[AggregateSpec, Source], Aggregate]

BUILDERS: Mapping[str, Builder] = {
    "COUNT": count,
    "SUM": sum_,
    "$SUM0": sum0,
    "SUM0": sum0,
    "AVG": average,
    "MIN": minimum,
    "MAX": maximum,
    "VAR_POP": var_pop,
    "VAR_SAMP": var_samp,
    "VARIANCE": var_samp,
    "STDDEV_POP": stddev_pop,
    "STDDEV_SAMP": stddev_samp,
    "STDDEV": stddev_samp,
}


def build(spec: AggregateSpec, source: Source) -> Aggregate:
    """The kernel of a call; NotSupportedError names a function without one."""
    builder = BUILDERS.get(spec.function)
    if builder is None:
        raise NotSupportedError(
            f"Aggregate function {spec.function} is not supported in streaming mode",
            expected=tuple(sorted(BUILDERS)),
        )
    return builder(spec, source)
