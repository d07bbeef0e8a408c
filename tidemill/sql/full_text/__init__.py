"""A query printed back as Flink prints it, every name in full: ``names`` says what names stand for,
``queries`` prints blocks and relations, ``expressions`` and ``functions`` what is in them. ``stars``
leaves a query as it was written, but for its stars."""
