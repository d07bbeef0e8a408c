"""SQLAlchemy over a gateway: ``create_engine("tidemill://HOST:8083")``.

``dialect.py`` connects and reflects, ``compiling.py`` writes statements, ``types.py`` maps types.
"""
