"""Texts of values: for each target the rules of Flink, once per face.

Values are carriers (``types.physical``). One at a time, a ``Style`` tells how a target writes them.

| target | values | columns | Spark SQL |
|---|---|---|---|
| CAST(x AS STRING), results | ``cast`` | ``functions.arrays``, as far as exact | ``cast_sql`` |
| formats ``csv`` and ``json`` | | ``format_columns`` | |
| connector ``print``: Java's toString | ``to_string`` | | |
| JSON of the gateway's endpoints | ``endpoint_json`` | | |
| JSON_OBJECT, JSON_ARRAY, JSON_*AGG | | ``json_functions`` | ``json_functions_sql`` |

``numbers`` and ``times`` have the digits that the targets share.
"""
