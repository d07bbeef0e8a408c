"""The jobs of a session: the interface of a job (``job``), PyFlink's client of a job (``client``), the jobs
that statements have started (``started``), the query in a job's record (``kept_query``), and VERIFY JOB
(``verification``).
"""
