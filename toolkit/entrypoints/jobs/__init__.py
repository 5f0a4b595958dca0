"""Run the jobs of a ``jobs.toml``, each slot once, whole or not at all.

::

    job_settings    where the file, the folder for outputs, the metrics are; read jobs.toml
    steps           check a step before anything starts, and run it: a notebook, or a command
    folders         staged, published and failed files of runs
    failures        the code of a failure, from the error that was raised
    holding         keep the run ours, and stop it when its time is up
    running         a run from its start to its end
    database_access the database, opened again after it was away
    finishing       what every start does besides: mend, tell, delete old files, measure
    telling         who is told what
    notices         texts, e-mail, webhook
    metrics         a textfile for Prometheus' node exporter
    scheduler_files cron, systemd, Airflow, GitHub
    job_log         lines of text or JSON
"""
