"""A query printed back as Flink prints it, every name in full: ``names`` says what names stand for,
``queries`` prints blocks and relations, ``expressions`` and ``functions`` what is in them."""
