"""Jobs as a session has them: what each of them can do (``job``), PyFlink's client of one (``client``), and
those that its statements have started (``started``).
"""
