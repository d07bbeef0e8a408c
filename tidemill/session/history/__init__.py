"""What jobs did, while they run and after: ``watch`` sees it, ``documents`` writes it as JSON, ``records``
keeps the jobs that have ended, ``keeper`` is what a session tells of its jobs, ``job_metrics`` counts them
for Prometheus."""
