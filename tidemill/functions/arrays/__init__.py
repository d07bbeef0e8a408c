"""Functions over Arrow arrays, for rows that a Python worker has: the second translation beside Spark SQL.

``api`` says what an entry is, ``expressions`` evaluates trees of kernels, and each other module has the
entries of a family: ``numeric``, ``decimals``, ``logic``, ``text``, ``patterns``, ``times``. The tables of
functions name the entry of a function beside its Spark text. Both mean the same: a value for which a kernel
could differ makes it raise ``Inexact``. Workers import these modules, so they import only numpy, pyarrow and
types.
"""
