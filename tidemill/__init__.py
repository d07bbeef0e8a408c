"""Flink SQL on the Spark you already have. Here are the names with which user functions are declared."""

from tidemill.user_functions.declared import udaf, udf, udtf
from tidemill.user_functions.kinds import AggregateFunction

__all__ = ["AggregateFunction", "udaf", "udf", "udtf"]
