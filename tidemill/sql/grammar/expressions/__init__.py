"""Value expressions: ``operators`` by precedence over ``values``, the others are kinds of values."""
