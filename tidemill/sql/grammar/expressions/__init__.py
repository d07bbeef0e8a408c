"""Value expressions: ``operators`` by precedence over ``primary``, the others are kinds of it."""
